"""The formats of a table as text and as Markdown."""

from collections.abc import Callable, Iterable
from unicodedata import combining, east_asian_width

from isoscope.display.escape import for_markdown
from isoscope.display.table import NOTHING, Table


def as_text(table: Table) -> str:
    """Aligned columns for a pipe, a log or a plain terminal."""
    if not table.rows:
        return "\n\n".join(filter(None, (NOTHING, _notes(table)))) + "\n"
    widths = [max(map(_width, (c.head, *c.cells))) for c in table.columns]
    lines = [
        "  ".join(
            _padded(cell, width, left=column.words)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in (tuple(column.head for column in table.columns), *table.rows)
    ]
    return "\n\n".join(filter(None, (table.caption, "\n".join(lines), _notes(table)))) + "\n"


def as_markdown(table: Table) -> str:
    """A table for a README, an issue or a notebook."""
    if not table.rows:
        left_out = _list(table.left_out, "left out: ", for_markdown)
        return _paragraphs([NOTHING], *_notes_apart(table), left_out)
    heads = [column.head for column in table.columns]
    rule = [":--" if column.words else "--:" for column in table.columns]
    rows = [_escaped(table, row, for_markdown) for row in table.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]
    warnings = [f"{n}. {for_markdown(text)}" for n, text in enumerate(table.warnings, 1)]
    left_out = _list(table.left_out, "left out: ", for_markdown)
    caption = [for_markdown(table.caption)]
    return _paragraphs(caption, lines, *_notes_apart(table), warnings, left_out)


def _notes(table: Table) -> str:
    numbered = [f"{number}  {text}" for number, text in enumerate(table.warnings, start=1)]
    left_out = [f"left out: {text}" for text in table.left_out]
    return "\n".join([*table.notes, *numbered, *left_out])


def _notes_apart(table: Table) -> list[list[str]]:
    return [[for_markdown(text)] for text in table.notes]


def _padded(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def _width(text: str) -> int:
    """Cells that text takes in a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def _escaped(table: Table, row: Iterable[str], escape: Callable[[str], str]) -> list[str]:
    pairs = zip(row, table.columns, strict=True)
    return [escape(cell) if column.words else cell for cell, column in pairs]


def _list(texts: Iterable[str], start: str, escape: Callable[[str], str]) -> list[str]:
    return [f"- {start}{escape(text)}" for text in texts]


def _paragraphs(*parts: list[str]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if any(part)) + "\n"
