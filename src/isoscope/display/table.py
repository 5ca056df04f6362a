"""Tables: rows and columns, before any format is chosen."""

from collections.abc import Iterable, Sequence
from typing import Literal

from isoscope.dataclass import dataclass

NOTHING = "no readings"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and the cells under it."""

    head: str
    cells: tuple[str, ...]
    words: bool = False  # words are left-aligned and escaped; numbers are right-aligned
    fold: int | None = None  # narrowest width on a terminal; None where it never folds
    # Marks are the numbers of warnings; LaTeX raises them beside the column of names.
    role: Literal["", "name", "marks"] = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns under a caption, then notes and numbered warnings."""

    caption: str
    columns: tuple[Column, ...]
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # what could not be computed, and why
    notes: tuple[str, ...] = ()  # remarks on the table as a whole

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


def warning_column(rows: Iterable[Iterable[str]], warnings: Sequence[str]) -> Column:
    """The column of marks: for each row the numbers of its warnings."""
    number = {text: str(place) for place, text in enumerate(warnings, start=1)}
    cells = (" ".join(dict.fromkeys(number[text] for text in row)) for row in rows)
    return Column("warnings", tuple(cells), words=True, role="marks")


def non_empty(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns that have something in at least one cell."""
    return tuple(column for column in columns if any(column.cells))
