"""Runs that were saved: merge them, read them, and the base of experiments on them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar, cast

from isoscope.accumulate import Accumulator
from isoscope.accumulate.survey import Kind, variants
from isoscope.display import READINGS, Results
from isoscope.engine import Notify
from isoscope.engine.plan import Plan, Unit
from isoscope.errors import ConfigError, MergeError
from isoscope.measures import MEASURES
from isoscope.measures.base import NOT_OF_ROWS
from isoscope.registry import unknown
from isoscope.store import check_target, mergeable, save
from isoscope.store.atomic import staging
from isoscope.store.run import Run, load, merge_states, open_run
from isoscope.store.schema import STATE
from isoscope.store.state import State
from isoscope.study.measure_choice import (
    companions,
    concerns,
    isotropic_levels,
    measure_names,
    nothing,
    options_of,
    read_sites,
    read_state,
)
from isoscope.study.option import Part, about
from isoscope.study.run import Live, Planner, Runnable
from isoscope.types import CLASSES, VARIANTS, Reading

R_co = TypeVar("R_co", covariant=True)
A = TypeVar("A", bound=Accumulator[object])
NOT_MERGED = {
    "sweep": "--seeds or --weights",
    "trajectory": "checkpoints",
    "series": "checkpoints",  # of attention heads
    "curvature": "--draws or --tokens",
}
Summaries = Mapping[Kind, Accumulator[object]]


def merge(
    runs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> Results[Reading]:
    """Add up runs that were measured apart, into a new run folder."""
    target = check_target(output, overwrite)
    if not runs:
        raise ConfigError(
            "a merge needs at least 1 run, got 0",
            hint="name the run folders to add up",
            slug="nothing-to-merge",
        )
    loaded = [load(run) for run in runs]
    for run in loaded:
        kind = "series" if run.series is not None else run.origin.kind
        kind = run.origin.kind if run.origin.kind in NOT_MERGED else kind
        if kind in NOT_MERGED:
            raise MergeError(
                f"cannot merge {run.path.name!r}, which is a {kind}, with other runs",
                hint=f"a {kind} is resumed where it was stopped: do it again with more "
                f"{NOT_MERGED[kind]} under a new name instead",
                slug="merge-sweep",
            )
    origin = mergeable([run.origin for run in loaded])
    config = {"merge": {"runs": [str(Path(run).resolve()) for run in runs]}}
    with staging(target) as folder:
        state = folder / STATE
        merge_states(loaded, state)
        whole = State(state)
        readings = read_state(
            whole, origin.settings.measures, Path(output).name, options_of(origin.settings)
        )
        save(output, whole, readings, origin, config, overwrite)
    return readings


def read(
    run: str | os.PathLike[str] | Run,
    *,
    measures: Sequence[str] | None = None,
    sites: Sequence[str] | None = None,
    variant: str | None = None,
    bands: bool = True,
) -> Results[Reading]:
    """Return the readings of a run folder; measures not yet read come from its summaries.

    With a `variant` only those of such rows, where there are several; without `bands` those
    of all rows alone, and not of rare and frequent tokens or early and late positions.
    """
    if variant is not None and variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    found = open_run(run)
    options = options_of(found.settings)
    kept, left_out = list(found.readings), tuple(found.left_out)
    if measures is not None:
        have = {each.measure for each in kept}
        # An experiment may have readings that are not of rows, such as the norm of a bias.
        own = [name for name in measures if name in have and not _is_of_rows(name)]
        others = [name for name in measures if name not in own]
        names = (*own, *(measure_names(others) if others or not own else ()))
        fresh = [name for name in names if name not in have]
        missing: dict[str, str] = {}
        if fresh:
            if sites is not None:
                _known_sites(sites, (*(each.site for each in kept), *found.sites))
            more, missing = read_sites(found.by_site(sites), fresh, found.path.name, options)
            kept += more
        left_out = tuple(f"{name}: {why}" for name, why in missing.items())
        kept = [
            each
            for name in names
            for each in kept
            if each.measure == name or (name in MEASURES and each.measure in companions(name))
        ]
        if not kept:
            raise nothing(missing)
    if sites is not None:
        _known_sites(sites, (each.site for each in kept))
        kept = [each for each in kept if each.site in sites]
        left_out = tuple(text for text in left_out if concerns(text, sites))
    if variant is not None:
        # Matrices and vectors on disk have one variant only.
        several = {each.site for each in kept if each.variant != "all"}
        kept = [each for each in kept if each.variant == variant or each.site not in several]
    if not bands:
        kept = [each for each in kept if not each.group] or kept
    return Results(
        kept,
        READINGS,
        remarks=found.origin.remarks,
        left_out=left_out,
        isotropic=isotropic_levels(kept, options),
    )


def _is_of_rows(name: str) -> bool:
    """Whether a name is that of a measure which is read off rows."""
    return name in MEASURES and MEASURES[name].offered not in NOT_OF_ROWS


def _known_sites(sites: Sequence[str], there: Iterable[str]) -> None:
    known = dict.fromkeys(there)
    for site in sites:
        if site not in known:
            raise unknown("site", site, known)


def summaries_of(
    run: Run, sites: Sequence[str] | None = None, variant: str = "all"
) -> Iterator[tuple[str, str, Summaries]]:
    """Yield (site, variant, accumulators) of some sites of a run, or of all.

    Sites are read from disk one at a time. Matrices and vectors on disk have one variant
    only, `all`, and are yielded in it.
    """
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    _known_sites(sites or (), run.sites)
    for site in run.sites if sites is None else sites:
        held = run.survey_of(site).held
        for _, names, parts in variants(held):
            if variant in names:
                yield site, variant, parts
            elif not any((site, each) in held for each in CLASSES):
                yield site, "all", parts


def summary_of(here: Summaries, kind: type[A]) -> A | None:
    """Return the accumulator of one kind; None where the run has not kept it."""
    return cast(A, here[kind]) if kind in here else None


class SavedSites(Part, frozen=True, kw_only=True):
    """Which rows of which sites of a run."""

    run: Annotated[
        str | None,
        about("A run folder written by -o.", "RUN", argument=True, path=True, live=True),
    ]
    sites: Annotated[
        tuple[str, ...] | None,
        about("A site; repeat it for more than one.", "SITE", flag="-s/--site"),
    ] = None
    variant: Annotated[
        Literal["all", "no-special", "no-sink"], about("all, no-special or no-sink.", "NAME")
    ] = "all"


class SavedSite(Unit, frozen=True, tag=True):
    """One site of a run."""

    site: str


class SavedPlan(Plan, frozen=True, kw_only=True):
    """The sites of a run."""

    stages: tuple[tuple[SavedSite, ...], ...]


class SavedRunSpec(Runnable[R_co], frozen=True, kw_only=True):
    """A spec of work on the sites of a saved run."""

    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = SavedPlan

    read: SavedSites


class SavedRunWorker(Planner[R_co]):
    """An open run whose sites are worked on one by one."""

    def __init__(self, spec: SavedRunSpec[R_co], _notify: Notify, live: Live) -> None:
        self.read = read = spec.read
        saved = live.get("run")
        self.saved = saved if isinstance(saved, Run) else load(read.run or "")
        sites = self.saved.sites or [each.site for each in self.saved.readings]  # of a series
        _known_sites(read.sites or (), sites)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.saved.path.name

    def plan(self) -> SavedPlan:
        """Return one unit per site."""
        sites = self.read.sites or self.saved.sites
        return SavedPlan(stages=(tuple(map(SavedSite, dict.fromkeys(sites))),))
