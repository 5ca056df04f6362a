"""The verb of norms: gain, bias and outliers of a model's norms, and what the last one does."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from isoscope.display.frames import Field, Line, texts
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Table
from isoscope.lab.norm.spec import SIGMAS, NormSpec
from isoscope.lab.norm.tables import final_table, gain_table, outlier_table, step_table
from isoscope.study.keywords import call, keywords
from isoscope.study.spec import EngineOptions

FINAL, OUTLIERS, STEPS = "final-norm", "outliers", "steps"


class Record(Protocol):
    """A result of the lab that turns into plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as numbers, strings, lists and dictionaries."""
        ...


@dataclass(frozen=True)
class Told:
    """One thing that is told of norms, and of which kind it is."""

    what: str
    record: Record

    def to_dict(self) -> Line:
        """Return the record as plain values."""
        return {"what": self.what, **self.record.to_dict()}


def records_of(norms: Iterable[Told], what: str) -> list[Any]:
    """Return the records of one kind: "final-norm", "outliers" or "steps"."""
    return [each.record for each in norms if each.what == what]


def _tables(
    norms: Results[Told], measures: Sequence[str] = (), sigmas: float = SIGMAS
) -> tuple[Table, ...]:
    """One table for each kind there is, and two for what a run says.

    Without `measures`, the table of the run has all of them.
    """
    final, roles, steps = (records_of(norms, what) for what in (FINAL, OUTLIERS, STEPS))
    found: list[Table] = []
    if final:
        found.append(final_table(str(norms.shared["model"]), final, norms.left_out))
    if final or roles:
        left_out = () if final else norms.left_out
        found.append(outlier_table(final, roles, sigmas, left_out))
    for each in steps:
        found.append(step_table(each, measures))
        if each.gained is not None:
            found.append(gain_table(each))
    return tuple(found)


def _lines(norms: Results[Told]) -> list[Line]:
    """One line per number."""
    return [norms.shared | line for each in norms for line in _LINES[each.what](each.to_dict())]


def _typed(line: Line) -> Line:
    """Return a line whose value is a number or missing; any other value is text, as JSON."""
    value = line["value"]
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return line | {"text": None}
    text = value if isinstance(value, str) else json.dumps(value)
    return line | {"value": None, "text": text}


_NAMED = texts("model", "what", "site", "variant", "name")
NORMS = RecordLayout(
    name="norms",
    tables=_tables,
    to_dict=Told.to_dict,
    fields=(*_NAMED, Field("value", "json")),
    lines=_lines,
    typed=(*_NAMED, Field("value", "number"), Field("text")),
    frame_line=_typed,
)


@keywords(NormSpec, EngineOptions)
def norm(*arguments: Any, **options: Any) -> Results[Told]:
    """Describe what the norms of a model hold, and what the final one does to the mean cosine.

    Gain and bias norms, their ratio r and the reference r^2 / (1 + r^2); dimensions whose
    gain or bias is more than `sigmas` standard deviations from the mean. With a run of the
    model, the readings before, between and after the final norm, and what gain and bias add,
    one after the other.
    """
    found = call(NormSpec, arguments, options, EngineOptions)
    tables = partial(_tables, measures=found.measures, sigmas=found.sigmas)
    return Results(
        [
            *(Told(FINAL, each) for each in found.final),
            *(Told(OUTLIERS, each) for each in found.outliers),
            *(Told(STEPS, each) for each in found.steps),
        ],
        replace(NORMS, tables=tables),
        shared={"model": found.model},
        left_out=found.problems,
    )


def _of_final(record: dict[str, Any]) -> list[dict[str, Any]]:
    start = {"what": FINAL, "site": record["site"], "variant": ""}
    kept = {name: value for name, value in record.items() if name not in ("what", "site")}
    return [start | {"name": name, "value": value} for name, value in kept.items()]


def _of_outliers(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"what": OUTLIERS, "site": each["module"], "variant": "", "name": name, "value": value}
        for each in record["norms"]
        for name, value in (("gain", each["gain"]), ("bias", each["bias"]))
    ]


def _of_steps(record: dict[str, Any]) -> list[dict[str, Any]]:
    start = {"what": STEPS, "site": record["site"], "variant": record["variant"]}
    values = {
        f"{step['measure']} {when}": step[when]
        for step in record["steps"]
        for when in ("before", "between", "after")
    }
    values |= {f"gained {name}": value for name, value in (record["gained"] or {}).items()}
    return [start | {"name": name, "value": value} for name, value in values.items()]


_LINES = {FINAL: _of_final, OUTLIERS: _of_outliers, STEPS: _of_steps}
