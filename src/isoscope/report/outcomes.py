"""Outcomes: what became of the rules of a check, as a list that shows itself as a table."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from math import isfinite
from typing import Any

from isoscope.report.escape import for_markdown, plain
from isoscope.report.formats import as_markdown, as_text
from isoscope.report.html import as_html
from isoscope.report.junit import as_junit
from isoscope.report.number import shown
from isoscope.report.table import Column, Table
from isoscope.types import Outcome

WORST_FIRST = ("breached", "could not run", "warning", "holds")
CODES = {"breached": 1, "could not run": 2, "warning": 0, "holds": 0}
MOST = 20  # sites of a rule that are shown one by one
MARKS = {"breached": "❌", "could not run": "❓", "warning": "⚠️", "holds": "✅"}


class Outcomes(list[Outcome]):
    """What became of each rule at each site, in the order of the rules."""

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        super().__init__(outcomes)

    @property
    def state(self) -> str:
        """The worst of all."""
        return _worst(self)

    @property
    def ok(self) -> bool:
        """Whether every rule was checked and none is breached; warnings are allowed."""
        return self.code == 0

    @property
    def code(self) -> int:
        """The exit code: 0 holds, 1 breached, 2 could not run."""
        return CODES[self.state]

    @property
    def rules(self) -> dict[str, list[Outcome]]:
        """The outcomes of each rule."""
        found: dict[str, list[Outcome]] = {}
        for each in self:
            found.setdefault(each.rule, []).append(each)
        return found

    @property
    def table(self) -> Table:
        """A line for each site where a rule does not hold, and one for those where it does."""
        lines = [line for each in self.rules.values() for line in _lines(each)]
        cells = list(zip(*lines, strict=True))
        heads = ("rule", "verdict", "site", "value", "95 % interval", "limit", "what")
        words = {"rule", "verdict", "site", "what"}
        columns = [
            Column(head, column, words=head in words)
            for head, column in zip(heads, cells, strict=False)
        ]
        variants = {each.variant for each in self}
        caption = f"run {self[0].run}" if self else ""
        if len(variants) == 1:
            caption += f", variant {self[0].variant}"
        stuck = [each for each in self if each.state == "could not run"]
        return Table(
            plain(caption),
            tuple(each for each in columns if any(each.cells)),
            left_out=tuple(plain(f"{each.rule}: {each.message}") for each in stuck),
        )

    @property
    def summary(self) -> str:
        """How many rules hold, in a sentence."""
        states = [_worst(each) for each in self.rules.values()]
        parts = [f"{states.count(state)} {state}" for state in WORST_FIRST if state in states]
        return f"{len(states)} rule{'s' if len(states) != 1 else ''}: {', '.join(parts)}"

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain dictionaries, with the keys of `--json`."""
        return [_record(each) for each in self]

    def to_json(self) -> str:
        """One JSON object a line, one for each rule and site."""
        return "".join(json.dumps(each, allow_nan=False) + "\n" for each in self.to_dict())

    def to_markdown(self) -> str:
        """A heading with the verdict, and a table: a summary for the page of a CI run."""
        run = for_markdown(self[0].run) if self else ""
        mark = MARKS[self.state]
        head = f"### {mark} isoscope check {run}\n\n{for_markdown(self.summary)}.\n"
        return f"{head}\n{as_markdown(self.table)}"

    def to_junit(self) -> str:
        """JUnit XML: a test case for each rule and site."""
        return as_junit(self)

    def __str__(self) -> str:
        return as_text(self.table).removesuffix("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table)


def _worst(outcomes: Iterable[Outcome]) -> str:
    states = {each.state for each in outcomes}
    return next((state for state in WORST_FIRST if state in states), "holds")


def _lines(outcomes: list[Outcome]) -> list[tuple[str, ...]]:
    """The lines of one rule, worst first."""
    bad = [each for each in outcomes if each.state != "holds"]
    bad.sort(key=lambda each: WORST_FIRST.index(each.state))
    lines = [_line(each, _reason(each)) for each in bad[:MOST]]
    if len(bad) > MOST:
        rule = plain(bad[0].rule)
        lines.append((rule, bad[-1].state, "…", "", "", "", f"{len(bad) - MOST} more sites"))
    held = [each for each in outcomes if each.state == "holds"]
    if held:
        nearest = min(held, key=lambda each: abs(each.margin or 0.0))
        of = f"nearest of {len(held)} sites" if len(held) > 1 else ""
        lines.append(_line(nearest, of))
    return lines


def _reason(outcome: Outcome) -> str:
    """What the other columns do not say."""
    if outcome.state == "warning":
        return "within noise"
    alone = outcome.state == "breached" and outcome.margin_low is None
    return "no interval" if alone else ""


def _line(outcome: Outcome, what: str) -> tuple[str, ...]:
    value, interval, limit = "", "", ""
    if outcome.value is not None:
        value, interval = shown(outcome.value, outcome.low, outcome.high)
    if outcome.limit is not None:
        limit = f"{outcome.limit:.4g}"
    site = plain(outcome.site)
    return plain(outcome.rule), outcome.state, site, value, interval, limit, what


def _record(outcome: Outcome) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in asdict(outcome).items()
    }
