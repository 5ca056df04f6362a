"""The verb of norms: gain, bias and outliers of a model's norms, and what the last one does."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope.errors import MergeError, UndefinedError
from isoscope.report.norms import final_table, gain_table, outlier_table, step_table
from isoscope.report.records import Record, Records
from isoscope.report.table import Table

if TYPE_CHECKING:
    from isoscope.lab.final_norm import FinalNorm
    from isoscope.store import Run

FINAL, OUTLIERS, STEPS = "final-norm", "outliers", "steps"
SIGMAS = 3.0


@dataclass(frozen=True)
class Told:
    """One thing that is told of norms, and of which kind it is."""

    what: str
    record: Record

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {"what": self.what, **self.record.to_dict()}


class Norms(Records[Told]):
    """The final norms, the outliers of all norms, and the way of a run through the last."""

    measures: Sequence[str] = ()  # of the run, in its table; all there are if none are named
    sigmas = SIGMAS

    def of(self, what: str) -> list[Any]:
        """Return the records of one kind: "final-norm", "outliers" or "steps"."""
        return [each.record for each in self if each.what == what]

    @property
    def tables(self) -> tuple[Table, ...]:
        """A table for each kind there is, and two for what a run says."""
        name = str(self.shared["model"])
        final, roles, steps = (self.of(what) for what in (FINAL, OUTLIERS, STEPS))
        found: list[Table] = []
        if final:
            found.append(final_table(name, final, self.left_out))
        if final or roles:
            left_out = () if final else self.left_out
            found.append(outlier_table(final, roles, self.sigmas, left_out))
        for each in steps:
            found.append(step_table(each, self.measures))
            if each.gained is not None:
                found.append(gain_table(each))
        return tuple(found)

    def lines(self) -> list[dict[str, Any]]:
        """A line a number."""
        return [
            self.shared | line for each in self for line in _LINES[each.what](each.to_dict())
        ]


def norm(
    model: str | os.PathLike[str] | Any,
    *,
    run: str | os.PathLike[str] | None = None,
    variant: str = "all",
    measures: Sequence[str] | None = None,
    sigmas: float = SIGMAS,
    **given: Any,
) -> Norms:
    """Say what the norms of a model hold, and what the final one does to the mean cosine.

    Gain and bias norms, their ratio r and the reference r^2 / (1 + r^2); dimensions whose
    gain or bias is beyond so many sigmas. With a run of the model, the readings before,
    between and after the final norm, and what gain and bias add, one after the other.
    `given` goes to the loader: dtype, device, trust_remote_code, say.
    """
    from isoscope.registry import unknown
    from isoscope.types import VARIANTS
    from isoscope.verbs.subject import subject

    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    whole = _opened(run, measures)
    found = subject(model, **given)
    from isoscope.lab import final_norms, outlying_parameters

    if whole is not None:
        _same_model(whole, found.loaded)
    final, problems = _tried(lambda: final_norms(found, sigmas=sigmas))
    roles, more = _tried(lambda: outlying_parameters(found, sigmas=sigmas))
    problems += more
    if not final and not roles:
        raise problems[0]
    answer = Norms(
        [
            *(Told(FINAL, each) for each in final),
            *(Told(OUTLIERS, each) for each in roles),
            *(Told(STEPS, each) for each in _steps(whole, variant, final)),
        ],
        shared={"model": found.loaded.name},
        left_out=[each.problem for each in problems],
    )
    answer.measures, answer.sigmas = tuple(measures or ()), sigmas
    return answer


def _opened(run: str | os.PathLike[str] | None, measures: Sequence[str] | None) -> "Run | None":
    """Return a run, with the measures that were named in it, before a model is loaded."""
    if run is None:
        return None
    from isoscope.registry import unknown
    from isoscope.store import load

    whole = load(run)
    known = dict.fromkeys(each.measure for each in whole.readings if _is_output(each.site))
    for name in measures or ():
        if name not in known:
            raise unknown("measure", name, known)
    return whole


def _is_output(name: str) -> bool:
    from isoscope.site import Site

    site = Site.parse(name)
    return site.is_final_norm and site.part == "out"


def _same_model(run: "Run", loaded: Any) -> None:
    """Refuse a run of another model: its rows never went through this norm."""
    theirs = run.origin.get("model")
    ours = loaded.identity
    if isinstance(theirs, dict) and theirs.get("sha") == ours.get("sha"):
        return
    raise MergeError(
        f"cannot follow {loaded.name} through the run {run.path.name!r} of {_name(theirs)}",
        hint="survey this model with -o and name that run",
        slug="run-other-model",
    )


def _name(model: Any) -> str:
    return str(model.get("model", "another model")) if isinstance(model, dict) else "no model"


def _tried(told: Any) -> tuple[list[Any], list[UndefinedError]]:
    try:
        return told(), []
    except UndefinedError as problem:
        return [], [problem]


def _steps(run: "Run | None", variant: str, final: Sequence["FinalNorm"]) -> list[Any]:
    if run is None:
        return []
    from isoscope.lab import through_norm

    return [each for each in through_norm(run, final) if each.variant == variant]


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
