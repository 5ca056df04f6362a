"""A table for a notebook or a page."""

from collections.abc import Iterable

from isoscope.display.escape import for_html
from isoscope.display.table import NOTHING, Column, Table


def as_html(table: Table) -> str:
    """A table with its warnings in a list under it, everything in it escaped."""
    left_out = _items("ul", (f"left out: {text}" for text in table.left_out))
    notes = "".join(f"<p>{for_html(text)}</p>" for text in table.notes)
    if not table.rows:
        return f"<p>{NOTHING}</p>{notes}{left_out}"
    heads = "".join(_cell('th scope="col"', c.head, c) for c in table.columns)
    rows = "".join(f"<tr>{_row(row, table.columns)}</tr>" for row in table.rows)
    caption = f"<caption>{for_html(table.caption)}</caption>" if table.caption else ""
    body = f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return f"<table>{caption}{body}</table>{notes}{_items('ol', table.warnings)}{left_out}"


def _row(row: Iterable[str], columns: Iterable[Column]) -> str:
    return "".join(_cell("td", *pair) for pair in zip(row, columns, strict=True))


def _cell(tag: str, text: str, column: Column) -> str:
    side = "left" if column.words else "right"
    return f'<{tag} style="text-align:{side}">{for_html(text)}</{tag.partition(" ")[0]}>'


def _items(tag: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{for_html(text)}</li>" for text in texts)
    return f"<{tag}>{items}</{tag}>" if items else ""
