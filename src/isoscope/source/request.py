"""What the caller of a corpus asked for."""

from dataclasses import dataclass
from typing import Literal

from isoscope.source.corpus.corpus import Kind

TEXT = "text"  # the column that is read unless another is named


@dataclass(frozen=True, slots=True)
class Wanted:
    """Names of columns, where documents are cut, and what to do with bad ones."""

    column: str | None = None
    target: str | None = None
    id: str | None = None
    per: Literal["line", "file"] | None = None
    kind: Kind | None = None
    skip_bad: bool = False
    length: int = 512  # tokens a document of a plain stream of tokens
    label: str | None = None  # a column that is carried along and fed to no model

    @property
    def text(self) -> str:
        """The column that holds the text."""
        return TEXT if self.column is None else self.column

    @property
    def columns(self) -> list[str]:
        """The columns that were named, of whatever role."""
        given = (self.column, self.target, self.id, self.label)
        return [each for each in given if each is not None]

    @property
    def roles(self) -> tuple[str, str | None, str | None, str | None]:
        """The columns of text, target, id and label."""
        return self.text, self.target, self.id, self.label

    @property
    def stamp(self) -> str:
        """What of this decides which content is read."""
        return "\0".join([self.text, self.target or "", self.id or ""])
