"""The table as a terminal shows it."""

from typing import TYPE_CHECKING

from isoscope.report.table import NOTHING, Column, Table

if TYPE_CHECKING:
    from rich.console import Console


FOLDED = {"run": 12, "site": 12, "group": 12, "what": 24}  # folded before anything else is


def show(table: Table, console: "Console") -> None:
    """Print a table, its warnings under it; nothing in it is taken for markup."""
    from rich.table import Table as Grid
    from rich.text import Text

    if table.caption:
        console.print(Text(table.caption, style="dim"))
    if table.rows:
        grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for column in table.columns:
            side = "left" if column.words else "right"
            grid.add_column(
                Text(column.head), justify=side, overflow="fold", min_width=_least(column)
            )
        for row in table.rows:
            grid.add_row(*(Text(cell) for cell in row))
        needed = sum(_least(column) + 2 for column in table.columns)
        console.print(grid, crop=False, width=max(console.width, needed))
    else:
        console.print(Text(NOTHING))
    notes = [f"{number}  {text}" for number, text in enumerate(table.warnings, start=1)]
    for note in ("", *table.notes, *notes, *(f"left out: {text}" for text in table.left_out)):
        console.print(Text(note))


def _least(column: Column) -> int:
    """The width a column keeps however narrow the terminal: a number cut in two misleads."""
    width = max(map(len, (column.head, *column.cells)))
    return min(width, FOLDED.get(column.head, width))
