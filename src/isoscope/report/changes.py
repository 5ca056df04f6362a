"""Changes: two runs side by side, as a list that shows itself as a table."""

import csv
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, fields
from io import StringIO
from math import isfinite
from typing import Any

from isoscope.report.escape import plain
from isoscope.report.formats import as_markdown, as_text
from isoscope.report.html import as_html
from isoscope.report.latex import as_latex
from isoscope.report.number import shown
from isoscope.report.table import Column, Table
from isoscope.types import Change

KEYS = tuple(field.name for field in fields(Change))
VERDICTS = ("changed", "within noise", "same", "no interval")


class Changes(list[Change]):
    """A list of changes, and what belongs to all of them."""

    def __init__(
        self,
        changes: Iterable[Change] = (),
        *,
        runs: tuple[str, str] = ("a", "b"),
        method: str = "",
        differs: Iterable[str] = (),
        left_out: Iterable[str] = (),
    ) -> None:
        super().__init__(changes)
        self.runs = runs
        self.method = method  # paired or independent, and why
        self.differs = tuple(differs)  # in what the runs themselves differ
        self.left_out = tuple(left_out)  # what could not be compared, and why

    @property
    def changed(self) -> "Changes":
        """Those that are more than noise."""
        return self._with(each for each in self if each.verdict == "changed")

    @property
    def summary(self) -> str:
        """How many changed, in a sentence."""
        counts = Counter(each.verdict for each in self)
        parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
        tested = sum(each.chance is not None for each in self)
        rule = f"changed: p < 0.05 after Holm's correction over {tested} rows"
        return f"{', '.join(parts)} of {len(self)} ({rule}; the intervals are not corrected)"

    @property
    def table(self) -> Table:
        """The rows and columns that every format shows."""
        if not self:
            left_out = tuple(map(plain, self.left_out))
            return Table("", (), (), left_out, tuple(map(plain, self.notes)))
        warnings = tuple(dict.fromkeys(text for each in self for text in each.warnings))
        columns = (*self._names(), *self._numbers(), *self._verdicts(warnings))
        return Table(
            caption=self._caption(),
            columns=tuple(column for column in columns if any(column.cells)),
            warnings=tuple(map(plain, warnings)),
            left_out=tuple(map(plain, self.left_out)),
            notes=tuple(map(plain, self.notes)),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What should be known of the comparison as a whole."""
        differs = f"the runs differ in {'; '.join(self.differs)}" if self.differs else ""
        return tuple(filter(None, (self.summary if self else "", self.method, differs)))

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain dictionaries, with the keys of `--json`."""
        names = dict(zip(("run_a", "run_b"), self.runs, strict=True))
        return [names | _record(each) for each in self]

    def to_json(self) -> str:
        """One JSON object a line."""
        return "".join(json.dumps(each, allow_nan=False) + "\n" for each in self.to_dict())

    def to_csv(self) -> str:
        """Comma-separated values, all digits; warnings joined by "; "."""
        lines = StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("run_a", "run_b", *KEYS))
        for each in self.to_dict():
            cells = each | {"warnings": "; ".join(each["warnings"])}
            writer.writerow(plain(v) if isinstance(v, str) else v for v in cells.values())
        return lines.getvalue()

    def to_markdown(self) -> str:
        """A Markdown table."""
        return as_markdown(self.table)

    def to_latex(self) -> str:
        """A booktabs table."""
        return as_latex(self.table)

    def _with(self, changes: Iterable[Change]) -> "Changes":
        return Changes(
            changes,
            runs=self.runs,
            method=self.method,
            differs=self.differs,
            left_out=self.left_out,
        )

    def _caption(self) -> str:
        shared = [f"a: {self.runs[0]}", f"b: {self.runs[1]}"]
        if len({each.site for each in self}) == 1:
            shared.append(f"site {self[0].site}")
        return plain(", ".join([*shared, f"variant {self[0].variant}"]))

    def _names(self) -> list[Column]:
        several = len({each.site for each in self}) > 1
        by_depth = any(each.site != each.other_site for each in self)
        sites = [each.site if several or by_depth else "" for each in self]
        others = [each.other_site if by_depth else "" for each in self]
        steps = ["" if each.step is None else str(each.step) for each in self]
        return [
            Column("site", tuple(map(plain, sites)), words=True),
            Column("site of b", tuple(map(plain, others)), words=True),
            Column("step", tuple(steps)),
            Column("measure", tuple(plain(each.measure) for each in self), words=True),
        ]

    def _numbers(self) -> list[Column]:
        first = [shown(each.a, each.a_low, each.a_high)[0] for each in self]
        second = [shown(each.b, each.b_low, each.b_high)[0] for each in self]
        gaps = [shown(each.difference, each.low, each.high) for each in self]
        return [
            Column("a", tuple(first)),
            Column("b", tuple(second)),
            Column("b - a", tuple(value for value, _ in gaps)),
            Column("95 % interval", tuple(interval for _, interval in gaps)),
        ]

    def _verdicts(self, warnings: tuple[str, ...]) -> list[Column]:
        number = {text: str(place) for place, text in enumerate(warnings, start=1)}
        marks = (" ".join(number[text] for text in each.warnings) for each in self)
        mixed = len({each.paired for each in self}) > 1
        how = ("paired" if each.paired else "independent" for each in self)
        return [
            Column("verdict", tuple(each.verdict for each in self), words=True),
            Column("how", tuple(how) if mixed else ("",) * len(self), words=True),
            Column("warnings", tuple(marks), words=True),
        ]

    def __str__(self) -> str:
        return as_text(self.table).removesuffix("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table)


def _record(change: Change) -> dict[str, Any]:
    """A change as JSON knows it: what is no number is null."""
    values = asdict(change) | {"warnings": list(change.warnings)}
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in values.items()
    }
