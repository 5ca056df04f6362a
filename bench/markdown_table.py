"""Tables as the pages of docs have them, and pages that are written from results."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def filled(text: str, name: str, content: str) -> str:
    """Return a page with what stands between a table's markers replaced."""
    begin, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    if begin not in text or end not in text:
        raise SystemExit(f"the page has no place for the table {name}")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"


def fill_page(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return a page with all of its tables."""
    for name, make in tables.items():
        text = filled(text, name, make())
    return text


def write_or_check(path: Path, page: Callable[[str], str]) -> None:
    """Write a page anew; with --check exit with 1 where it says something else."""
    old = path.read_text()
    new = page(old)
    if "--check" not in sys.argv:
        path.write_text(new)
    raise SystemExit("--check" in sys.argv and new != old)
