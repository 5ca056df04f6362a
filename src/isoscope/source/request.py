"""What a caller selects from a source: columns, the unit of a document, how to treat errors."""

from dataclasses import dataclass
from typing import Literal, get_args

Role = str  # of a column that accompanies the vectors: one of these three
ROLES: tuple[Role, ...] = ("document", "id", "text")
Kind = Literal["text", "tokens", "audio", "image"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TEXT = "text"  # the column of a corpus that is read unless another is named


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """Names of the columns or arrays to read as vectors and labels."""

    column: str | None = None
    document: str | None = None
    id: str | None = None
    text: str | None = None
    skip_bad: bool = False

    @property
    def roles(self) -> dict[Role, str]:
        """The columns of labels by role."""
        names = (self.document, self.id, self.text)
        return {role: name for role, name in zip(ROLES, names, strict=True) if name is not None}

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that are not part of the vector."""
        return tuple(self.roles.values())


@dataclass(frozen=True, slots=True)
class CorpusRequest:
    """Names of columns, where documents are cut, and what to do with bad ones."""

    column: str | None = None
    target: str | None = None
    id: str | None = None
    per: Literal["line", "file"] | None = None
    kind: Kind | None = None
    skip_bad: bool = False
    length: int = 512  # tokens per document of a plain stream of tokens
    label: str | None = None  # a column that accompanies the text and is fed to no model

    @property
    def text(self) -> str:
        """The column that holds the text."""
        return TEXT if self.column is None else self.column

    @property
    def columns(self) -> list[str]:
        """The columns that were named, of any role."""
        named = (self.column, self.target, self.id, self.label)
        return [each for each in named if each is not None]

    @property
    def roles(self) -> tuple[str, str | None, str | None, str | None]:
        """The columns of text, target, id and label."""
        return self.text, self.target, self.id, self.label

    @property
    def stamp(self) -> str:
        """The options that decide which content is read."""
        return "\0".join([self.text, self.target or "", self.id or ""])
