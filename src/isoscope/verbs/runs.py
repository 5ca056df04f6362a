"""The verbs of runs that were saved: merge them, read them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.errors import ConfigError, MergeError
from isoscope.types import Reading
from isoscope.verbs.answer import (
    answered,
    chosen,
    companions,
    isotropic_levels,
    nothing,
    options_of,
)

if TYPE_CHECKING:
    from isoscope.report import Results
    from isoscope.store import Run

Held = dict[Any, Any]  # accumulators by kind
MATRIX = ".weight"  # how sites that are matrices of a model end


def merge(
    runs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> "Results[Reading]":
    """Add up runs that were measured apart, into a new run folder."""
    from isoscope.store import check_target, load, mergeable, save
    from isoscope.survey import Survey

    check_target(output, overwrite)
    if not runs:
        raise ConfigError(
            "a merge needs at least 1 run, got 0",
            hint="name the run folders to add up",
            slug="nothing-to-merge",
        )
    loaded = [load(run) for run in runs]
    for run in loaded:
        if run.origin["kind"] == "sweep":
            raise MergeError(
                f"cannot merge {run.path.name!r}, which is a sweep, with other runs",
                hint="a sweep goes on where it was stopped: give it more --seeds or --weights "
                "under a new name instead",
                slug="merge-sweep",
            )
    origin = mergeable([run.origin for run in loaded])
    total = Survey()
    for run in loaded:
        # A matrix of the model is in every run of it, and counts once.
        known = {place for place in total.held if place[0].endswith(MATRIX)}
        parts = {place: held for place, held in run.survey.held.items() if place not in known}
        if len(loaded) > 1:
            parts = {place: _first_pass(place, held) for place, held in parts.items()}
        total.merge(Survey(parts, trouble=run.survey.trouble))
    settings = origin["settings"]
    readings = answered(total, settings["measures"], Path(output).name, options_of(settings))
    config = {"merge": {"runs": [str(Path(run).resolve()) for run in runs]}}
    save(output, total, readings, origin, config, overwrite)
    return readings


def _first_pass(place: tuple[str, str], held: Held) -> Held:
    """Return what adds up: second passes of two runs started from different means."""
    from isoscope.survey import SECOND_PASS

    if place[0].endswith(MATRIX):
        return held
    return {kind: part for kind, part in held.items() if kind not in SECOND_PASS}


def read(
    run: "str | os.PathLike[str] | Run",
    *,
    measures: Sequence[str] | None = None,
    sites: Sequence[str] | None = None,
) -> "Results[Reading]":
    """Return the readings of a run folder; measures not yet read come from its summaries."""
    from isoscope.report import READINGS, Results
    from isoscope.store import Run, load

    found = run if isinstance(run, Run) else load(run)
    options = options_of(found.settings)
    kept, left_out = list(found.readings), tuple(found.left_out)
    if measures is not None:
        names = chosen(measures)
        have = {each.measure for each in kept}
        fresh = [name for name in names if name not in have]
        if fresh:
            kept += found.survey.read(fresh, run=found.path.name, **options)
        left_out = tuple(
            f"{name}: {why}" for name, why in found.survey.left_out.items() if fresh
        )
        kept = [
            each
            for name in names
            for each in kept
            if each.measure == name or each.measure in companions(name)
        ]
        if not kept:
            raise nothing(found.survey.left_out)
    if sites is not None:
        _known_sites(sites, kept)
        kept = [each for each in kept if each.site in sites]
    levels = isotropic_levels(kept, options)
    return Results(kept, READINGS, left_out=left_out, isotropic=levels)


def _known_sites(sites: Sequence[str], readings: Iterable[Reading]) -> None:
    from isoscope.registry import unknown

    known = dict.fromkeys(each.site for each in readings)
    for site in sites:
        if site not in known:
            raise unknown("site", site, known)
