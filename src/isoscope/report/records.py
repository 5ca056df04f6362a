"""Records: a list of results that shows itself as tables and converts to other formats."""

import csv
import json
from collections.abc import Iterable
from io import StringIO
from typing import Any, Protocol, TypeVar

from isoscope.report.escape import plain
from isoscope.report.formats import as_markdown, as_text
from isoscope.report.html import as_html
from isoscope.report.latex import as_latex
from isoscope.report.table import Table


class Record(Protocol):
    """A result that can say itself in plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as numbers, strings, lists and dictionaries."""
        ...


R = TypeVar("R", bound=Record)


class Records(list[R]):
    """A list of results, and what belongs to all of them; subclasses lay out the tables."""

    def __init__(
        self,
        records: Iterable[R] = (),
        *,
        remarks: Iterable[str] = (),
        left_out: Iterable[str] = (),
        shared: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(records)
        self.remarks = tuple(remarks)  # what to bear in mind; tables show it under themselves
        self.left_out = tuple(left_out)  # what could not be told, and why
        self.shared = dict(shared or {})  # keys that every record begins with

    @property
    def tables(self) -> tuple[Table, ...]:
        """What is shown, one under another."""
        raise NotImplementedError

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain dictionaries, with the keys of `--json`."""
        return [self.shared | each.to_dict() for each in self]

    def lines(self) -> list[dict[str, Any]]:
        """The lines of `--csv`; those of `--json` unless a subclass has flatter ones."""
        return self.to_dict()

    def to_json(self) -> str:
        """One JSON object a line."""
        return "".join(json.dumps(each, allow_nan=False) + "\n" for each in self.to_dict())

    def to_csv(self) -> str:
        """Comma-separated values, all digits; what is a list is one cell, as JSON."""
        found = self.lines()
        names = list(dict.fromkeys(name for line in found for name in line))
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(line.get(name)) for name in names] for line in found)
        return text.getvalue()

    def to_markdown(self) -> str:
        """Markdown tables."""
        return "\n".join(as_markdown(each) for each in self.tables)

    def to_latex(self) -> str:
        """Tables in the style of booktabs."""
        return "\n".join(as_latex(each) for each in self.tables)

    def __str__(self) -> str:
        return "\n".join(as_text(each) for each in self.tables).removesuffix("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(as_html(each) for each in self.tables)


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return plain(value) if isinstance(value, str) else value
