"""Tables: rows and columns, before any format is chosen."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

NOTHING = "no readings"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and the cells under it."""

    head: str
    cells: tuple[str, ...]
    words: bool = False  # words stand left and are escaped; numbers stand right
    fold: int | None = None  # narrowest width on a terminal; None where it never folds
    # Marks are the numbers of warnings; LaTeX raises them beside the column of names.
    role: Literal["", "name", "marks"] = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns under a caption, then notes and numbered warnings."""

    caption: str
    columns: tuple[Column, ...]
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what belongs to the table as a whole

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


def non_empty(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns that have something in at least one cell."""
    return tuple(column for column in columns if any(column.cells))
