"""The table as a terminal shows it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isoscope.display.table import NOTHING, Column, Table

if TYPE_CHECKING:
    from rich.console import Console


def show(table: Table, console: "Console") -> None:
    """Print a table, its warnings under it; nothing in it is taken for markup."""
    from rich.table import Table as Grid
    from rich.text import Text

    if table.caption:
        console.print(Text(table.caption, style="dim"))
    if table.rows:
        grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        widths = _widths(table.columns, console.width)
        for column, width in zip(table.columns, widths, strict=True):
            side = "left" if column.words else "right"
            grid.add_column(
                Text(column.head),
                justify=side,
                overflow="fold",
                min_width=width,
                max_width=width,
            )
        for row in table.rows:
            grid.add_row(*(Text(cell) for cell in row))
        console.print(grid, crop=False, width=max(console.width, sum(widths) + 2 * len(widths)))
    else:
        console.print(Text(NOTHING))
    notes = [f"{number}  {text}" for number, text in enumerate(table.warnings, start=1)]
    for note in ("", *table.notes, *notes, *(f"left out: {text}" for text in table.left_out)):
        console.print(Text(note))


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """The width of each column; some give way, but a number cut in two would mislead."""
    widths = [max(map(len, (column.head, *column.cells))) for column in columns]
    excess = sum(widths) + 2 * (len(widths) - 1) - room
    for place in sorted(range(len(widths)), key=lambda place: -widths[place]):
        fold = columns[place].fold
        least = widths[place] if fold is None else min(widths[place], fold)
        given = min(max(excess, 0), widths[place] - least)
        widths[place] -= given
        excess -= given
    return widths
