"""The worker of `isoscope norm`: parameters of norms, and a run's rows through the last."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.errors import MergeError, UndefinedError
from isoscope.lab.norm.affine import Affine
from isoscope.lab.norm.final_norm import FinalNorm, final_norms
from isoscope.lab.norm.outliers import RoleOutliers, outlying_parameters
from isoscope.lab.norm.spec import NormPlan, NormsFound, NormSpec
from isoscope.lab.norm.steps import through_norm
from isoscope.registry import unknown
from isoscope.site import Site
from isoscope.store import load
from isoscope.store.state import State
from isoscope.study.model import open_model
from isoscope.study.run import Finished, Live

if TYPE_CHECKING:
    from isoscope.capture.model.load import Loaded
    from isoscope.store import Run

T = TypeVar("T")


class AffineRecord(msgspec.Struct, frozen=True):
    """Gain and bias of a norm, as plain values."""

    gain: list[float]
    bias: list[float] | None
    centred: bool


class NormRecord(msgspec.Struct, frozen=True):
    """What the one unit has found."""

    final: list[dict[str, object]]  # fields of a FinalNorm
    outliers: list[RoleOutliers]
    problems: list[str]


class NormWorker:
    """A loaded model, and a run of it where one is named."""

    def __init__(self, spec: NormSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        self.whole = _open_run(spec)
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)
        if self.whole is not None:
            _same_model(self.whole, self.subject.loaded)

    def content(self) -> dict[str, str]:
        """Return nothing: what is found is not written to a folder."""
        return {}

    def plan(self) -> NormPlan:
        """Return the one unit."""
        return NormPlan()

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Nothing to prepare."""

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> dict[str, object]:
        """Return final norms, outlying parameters, and what could not be determined."""
        _ = unit, scratch, ticks
        sigmas = self.spec.sigmas
        final, problems = _attempt(lambda: final_norms(self.subject, sigmas=sigmas))
        roles, more = _attempt(lambda: outlying_parameters(self.subject, sigmas=sigmas))
        if not final and not roles:
            raise [*problems, *more][0]
        return {
            "final": [_record(each) for each in final],
            "outliers": [asdict(each) for each in roles],
            "problems": [each.problem for each in (*problems, *more)],
        }

    def finish(self, done: Finished) -> NormsFound:
        """Return what was found, and the way of the run's rows through the final norm."""
        record = msgspec.convert(done.records[0], NormRecord)
        final = [_final_norm(each) for each in record.final]
        steps = [] if self.whole is None else through_norm(self.whole, final)
        steps = [each for each in steps if each.variant == self.spec.variant]
        name, named = self.subject.loaded.name, self.spec.measures or ()
        problems, sigmas = record.problems, self.spec.sigmas
        return NormsFound(name, final, record.outliers, steps, problems, named, sigmas)


def _attempt(find: Callable[[], list[T]]) -> tuple[list[T], list[UndefinedError]]:
    try:
        return find(), []
    except UndefinedError as problem:
        return [], [problem]


def _record(norm: FinalNorm) -> dict[str, object]:
    """Return a norm as plain values."""
    gain, bias = norm.affine.gain, norm.affine.bias
    bias = None if bias is None else bias.tolist()
    return {**asdict(norm), "affine": AffineRecord(gain.tolist(), bias, norm.affine.centred)}


def _final_norm(record: Mapping[str, object]) -> FinalNorm:
    """Return the norm that a record is of."""
    affine = msgspec.convert(record["affine"], AffineRecord)
    bias = None if affine.bias is None else np.array(affine.bias)
    whole = Affine(np.array(affine.gain), bias, affine.centred)
    values: dict[str, Any] = {**record, "affine": whole}
    return FinalNorm(**values)


def _open_run(spec: NormSpec) -> "Run | None":
    """Return a run, with the measures that were named in it, before a model is loaded."""
    if spec.run is None:
        return None
    whole = load(spec.run)
    known = dict.fromkeys(each.measure for each in whole.readings if _is_output(each.site))
    for name in spec.measures or ():
        if name not in known:
            raise unknown("measure", name, known)
    return whole


def _is_output(name: str) -> bool:
    site = Site.parse(name)
    return site.is_final_norm and site.part == "out"


def _same_model(run: "Run", loaded: "Loaded") -> None:
    """Refuse a run of another model: its rows never went through this norm."""
    theirs = run.origin.model
    if theirs is not None and theirs.sha == loaded.identity["sha"]:
        return
    name = "no model" if theirs is None else theirs.model or "another model"
    raise MergeError(
        f"cannot follow {loaded.name} through the run {run.path.name!r} of {name}",
        hint="survey this model with -o and name that run",
        slug="run-other-model",
    )
