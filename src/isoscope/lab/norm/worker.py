"""The worker of `isoscope norm`: parameters of norms, and a run's rows through the last."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TypeVar

import msgspec
import numpy as np

from isoscope.accumulate import Moments, MomentsSummary, Reservoir, cosine_over_pairs
from isoscope.capture.model.load import Loaded
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import MergeError, UndefinedError
from isoscope.lab.norm.parameters import (
    Affine,
    final_affines,
    final_norms,
    no_final_norm,
    role_outliers,
)
from isoscope.lab.norm.results import (
    NORMS,
    FinalNorm,
    Gained,
    Norm,
    NormStep,
    NormSteps,
    RoleOutliers,
    norm_tables,
)
from isoscope.lab.norm.spec import NormPlan, NormSpec
from isoscope.registry import check_names
from isoscope.site import Site
from isoscope.store import Run, load
from isoscope.study.model import open_model
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.saved_runs import summaries_of, summary_of
from isoscope.types import VARIANTS, Array

T = TypeVar("T")


class NormsFound(msgspec.Struct, frozen=True):
    """The result of the one unit."""

    final: list[FinalNorm]
    outliers: list[RoleOutliers]
    steps: list[NormSteps]
    problems: list[str]


class NormWorker(Planner[Results[Norm]]):
    """A loaded model, and a run of it where one is named."""

    def __init__(self, spec: NormSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        self.whole = _open_run(spec)
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)
        if self.whole is not None:
            _check_model(self.whole, self.subject.loaded)

    def plan(self) -> NormPlan:
        """Return the one unit."""
        return NormPlan()

    def run(self, _unit: object, _scratch: Scratch, _ticks: Ticks, /) -> NormsFound:
        """Return final norms, outliers, steps, and what could not be determined."""
        subject, sigmas = self.subject, self.spec.sigmas
        final, problems = _attempt(lambda: final_norms(subject, sigmas))
        roles, more = _attempt(lambda: role_outliers(subject, sigmas))
        problems += more
        if not final and not roles:
            raise problems[0]
        steps: list[NormSteps] = []
        if self.whole is not None:
            affines = final_affines(subject) if final else {}
            by_site = {site: each for site, (_, each) in affines.items()}
            steps = through_norm(self.whole, by_site, (self.spec.variant,))
        return NormsFound(final, roles, steps, [each.problem for each in problems])

    def finish(self, done: Finished) -> Results[Norm]:
        """Return what the one unit found."""
        found = msgspec.convert(done.records[0], NormsFound, str_keys=True)
        tables = partial(
            norm_tables, measures=self.spec.measures or (), sigmas=self.spec.sigmas
        )
        return Results(
            [*found.final, *found.outliers, *found.steps],
            replace(NORMS, tables=tables),
            shared={"model": self.subject.loaded.name},
            left_out=found.problems,
        )


def _attempt(find: Callable[[], list[T]]) -> tuple[list[T], list[UndefinedError]]:
    try:
        return find(), []
    except UndefinedError as problem:
        return [], [problem]


def through_norm(
    run: Run, affines: Mapping[str, Affine] | None = None, variants: Iterable[str] = VARIANTS
) -> list[NormSteps]:
    """Return what a run reads before, between and after each final norm, in some variants.

    With gain and bias of the norms by site, also what these do one after the other, and the
    reference.
    """
    outputs = map(_final_output, dict.fromkeys(each.site for each in run.readings))
    sites = dict.fromkeys(filter(None, outputs))
    if not sites:
        raise no_final_norm(f"the run {run.path.name!r}")
    found: list[NormSteps] = []
    for site, variant in product(sites, variants):
        steps, affine = _steps(run, site, variant), (affines or {}).get(site)
        if steps:
            gained = None if affine is None else _gained_in_run(run, site, variant, affine)
            reference = None if affine is None else affine.reference
            found.append(NormSteps(site, variant, steps, reference, gained))
    return found


def _steps(run: Run, site: str, variant: str) -> list[NormStep]:
    values: dict[str, dict[str, float]] = {}
    for reading in run.readings:
        at = Site.parse(reading.site)
        ungrouped = not reading.group and reading.variant == variant
        if ungrouped and at.is_final_norm and at.group == site:
            values.setdefault(reading.measure, {})[at.part] = reading.value
    return [
        NormStep(measure, found.get("in"), found.get("mid"), found.get("out"))
        for measure, found in values.items()
    ]


def _gained_in_run(run: Run, site: str, variant: str, affine: Affine) -> Gained | None:
    for _, _, here in summaries_of(run, [str(replace(Site.parse(site), part="mid"))], variant):
        rows, moments = summary_of(here, Reservoir), summary_of(here, Moments)
        if rows is not None and moments is not None:
            return cosine_steps(rows.finalize().rows, affine, moments.finalize())
    return None


def cosine_steps(rows: Array, affine: Affine, moments: MomentsSummary | None = None) -> Gained:
    """Return what gain and bias make of the mean cosine of normalised rows."""
    rows = np.asarray(rows, dtype=np.float64)  # (n, d)
    bias = np.zeros(rows.shape[1]) if affine.bias is None else affine.bias
    mean, square = rows.mean(axis=0), (rows**2).mean(axis=0)
    if moments is not None:  # of all rows, not of the sample
        mean = moments.mean
        square = np.diag(moments.whole.scatter) / moments.count + mean**2
    length = bias @ bias
    zero_mean = float(length / (length + affine.gain**2 @ square))
    return Gained(
        n=len(rows),
        normalised=mean_cosine(rows),
        gain=mean_cosine(rows * affine.gain),
        gain_and_bias=mean_cosine(rows * affine.gain + bias),
        centred_gain_and_bias=mean_cosine((rows - mean) * affine.gain + bias),
        zero_mean=None if affine.bias is None else zero_mean,
    )


def mean_cosine(rows: Array) -> float:
    """Return the mean cosine over all pairs of rows that have a direction."""
    norms = np.linalg.norm(rows, axis=1)
    units = rows[norms > 0] / norms[norms > 0, None]
    if len(units) < 2:
        return float("nan")
    total = units.sum(axis=0)
    return float(cosine_over_pairs(total @ total, len(units)))


def _open_run(spec: NormSpec) -> Run | None:
    """Open the run, and check the names of its measures, before a model is loaded."""
    if spec.run is None:
        return None
    whole = load(spec.run)
    known = dict.fromkeys(each.measure for each in whole.readings if _final_output(each.site))
    check_names("measure", spec.measures or (), known)
    return whole


def _final_output(name: str) -> str:
    """Return the norm that a site is the output of; empty for any other site."""
    site = Site.parse(name)
    return site.group if site.is_final_norm and site.part == "out" else ""


def _check_model(run: Run, loaded: Loaded) -> None:
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
