"""A table as text, Markdown, HTML, LaTeX, and on a terminal."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from isoscope.display.table import NOTHING, Column, Table
from isoscope.escape import for_html, for_latex, for_markdown, plain

if TYPE_CHECKING:
    from rich.console import Console

_SCIENTIFIC = re.compile(r"(-?[\d.]+)e([+-]\d+)")
_NEGATIVE = re.compile(r"(?<![$\d{])-(\d[\d.]*)")


# --- text and Markdown --------------------------------------------------------------------
def as_text(table: Table) -> str:
    """Aligned columns for a pipe, a log or a plain terminal."""
    notes = "\n".join(_footnotes(table))
    if not table.rows:
        return "\n\n".join(filter(None, (NOTHING, notes))) + "\n"
    widths = [max(map(_width, (c.head, *c.cells))) for c in table.columns]
    lines = [
        "  ".join(
            _pad(cell, width, left=column.words)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in (tuple(column.head for column in table.columns), *table.rows)
    ]
    return "\n\n".join(filter(None, (table.caption, "\n".join(lines), notes))) + "\n"


def as_markdown(table: Table) -> str:
    """A table for a README, an issue or a notebook."""
    notes = [[for_markdown(text)] for text in table.notes]
    skipped = [f"- skipped: {for_markdown(text)}" for text in table.left_out]
    if not table.rows:
        return _paragraphs([NOTHING], *notes, skipped)
    heads = [column.head for column in table.columns]
    rule = [":--" if column.words else "--:" for column in table.columns]
    rows = [
        [
            for_markdown(cell) if column.words else cell
            for cell, column in zip(row, table.columns, strict=True)
        ]
        for row in table.rows
    ]
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]
    warnings = [f"{n}. {for_markdown(text)}" for n, text in enumerate(table.warnings, 1)]
    return _paragraphs([for_markdown(table.caption)], lines, *notes, warnings, skipped)


def _footnotes(table: Table) -> list[str]:
    numbered = [f"{number}  {text}" for number, text in enumerate(table.warnings, start=1)]
    return [*table.notes, *numbered, *(f"skipped: {text}" for text in table.left_out)]


def _pad(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def _width(text: str) -> int:
    """Cells that text takes in a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def _paragraphs(*parts: list[str]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if any(part)) + "\n"


# --- HTML ---------------------------------------------------------------------------------
def as_html(table: Table) -> str:
    """A table for a notebook or a page, warnings in a list under it, everything escaped."""
    skipped = _items("ul", (f"skipped: {text}" for text in table.left_out))
    notes = "".join(f"<p>{for_html(text)}</p>" for text in table.notes)
    if not table.rows:
        return f"<p>{NOTHING}</p>{notes}{skipped}"
    heads = "".join(_cell('th scope="col"', c.head, c) for c in table.columns)
    cells = (zip(row, table.columns, strict=True) for row in table.rows)
    rows = "".join(f"<tr>{''.join(_cell('td', *pair) for pair in row)}</tr>" for row in cells)
    caption = f"<caption>{for_html(table.caption)}</caption>" if table.caption else ""
    body = f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return f"<table>{caption}{body}</table>{notes}{_items('ol', table.warnings)}{skipped}"


def _cell(tag: str, text: str, column: Column) -> str:
    side = "left" if column.words else "right"
    return f'<{tag} style="text-align:{side}">{for_html(text)}</{tag.partition(" ")[0]}>'


def _items(tag: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{for_html(text)}</li>" for text in texts)
    return f"<{tag}>{items}</{tag}>" if items else ""


# --- LaTeX --------------------------------------------------------------------------------
def as_latex(table: Table) -> str:
    """A booktabs table for a paper; warnings are numbered notes under it."""
    if not table.rows:
        return f"% {NOTHING}\n"
    columns = [column for column in table.columns if column.role != "marks"]
    sides = "".join("l" if column.words else "r" for column in columns)
    lines = [
        *([f"% {plain(table.caption)}"] if table.caption else []),
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        " & ".join(for_latex(column.head) for column in columns) + r" \\",
        r"\midrule",
        *(_latex_row(table, row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *_latex_notes(table),
    ]
    return "\n".join(lines) + "\n"


def _latex_row(table: Table, row: tuple[str, ...]) -> str:
    """One line; the marks of warnings are superscripts of the name."""
    pairs = list(zip(row, table.columns, strict=True))
    marks = "".join(cell for cell, column in pairs if column.role == "marks").replace(" ", ",")
    raised = {"name": rf"\textsuperscript{{{marks}}}" if marks else ""}
    cells = [
        (for_latex(cell) if column.words else _latex_number(cell)) + raised.get(column.role, "")
        for cell, column in pairs
        if column.role != "marks"
    ]
    return " & ".join(cells) + r" \\"


def _latex_number(text: str) -> str:
    """Numbers with a real minus sign and real powers of ten."""
    text = _SCIENTIFIC.sub(lambda m: rf"${m[1]}\times10^{{{int(m[2])}}}$", text)
    return _NEGATIVE.sub(r"$-\1$", text)


def _latex_notes(table: Table) -> list[str]:
    notes = [rf"{for_latex(text)}\par" for text in table.notes]
    notes += [
        rf"\textsuperscript{{{number}}} {for_latex(text)}\par"
        for number, text in enumerate(table.warnings, start=1)
    ]
    notes += [rf"skipped: {for_latex(text)}\par" for text in table.left_out]
    return ["", r"\smallskip", r"{\footnotesize", *notes, "}"] if notes else []


# --- terminal -----------------------------------------------------------------------------
def print_table(table: Table, console: "Console") -> None:
    """Print a table, its warnings under it; nothing in it is read as markup."""
    from rich.text import Text

    if table.caption:
        console.print(Text(table.caption, style="dim"))
    if table.rows:
        for number, columns in enumerate(_split(table.columns, console.width)):
            if number:
                console.print()
            _print_columns(columns, console)
    else:
        console.print(Text(NOTHING))
    for note in ("", *_footnotes(table)):
        console.print(Text(note))


def _print_columns(columns: Sequence[Column], console: "Console") -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    widths = _fit_widths(columns, console.width)
    for column, width in zip(columns, widths, strict=True):
        grid.add_column(
            Text(column.head),
            justify="left" if column.words else "right",
            overflow="fold",
            min_width=width,
            max_width=width,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid, crop=False, width=max(console.width, sum(widths) + 2 * len(widths)))


def _split(columns: Sequence[Column], room: int) -> list[Sequence[Column]]:
    """Return the columns in as many parts as the terminal needs, each with the names of rows.

    A line that the terminal breaks cannot be read as a row.
    """
    if _total(_fit_widths(columns, room)) <= room:
        return [columns]
    names = list(takewhile(lambda each: each.words, columns))
    others = columns[len(names) :]
    most = max(map(_widest, others), default=0)
    left = _total(_fit_widths(names, room - most - 2))  # names fold where one column needs it
    parts: list[list[Column]] = [[]]
    for column in others:
        wide = _total([left, *map(_widest, parts[-1]), _widest(column)])
        if parts[-1] and wide > room:
            parts.append([])
        parts[-1].append(column)
    return [[*names, *part] for part in parts]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _widest(column: Column) -> int:
    """Return the width of the longest cell, or of the heading."""
    return max(map(_width, (column.head, *column.cells)))


def _fit_widths(columns: Sequence[Column], room: int) -> list[int]:
    """The width of each column, the widest narrowed first; numbers are never cut in two."""
    widths = [_widest(column) for column in columns]
    excess = _total(widths) - room
    for place in sorted(range(len(widths)), key=lambda place: -widths[place]):
        fold = columns[place].fold
        least = widths[place] if fold is None else min(widths[place], fold)
        cut = min(max(excess, 0), widths[place] - least)
        widths[place] -= cut
        excess -= cut
    return widths
