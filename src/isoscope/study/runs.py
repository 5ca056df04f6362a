"""Saved runs: merge them, read them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isoscope.errors import ConfigError, MergeError
from isoscope.study.reads import (
    companions,
    isotropic_levels,
    measure_names,
    nothing,
    options_of,
    read_sites,
    read_state,
)

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.store import Run
    from isoscope.types import Reading


def merge(
    runs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> "Results[Reading]":
    """Merge runs of separate parts into a new run folder."""
    from isoscope.store import check_target, load, mergeable, save
    from isoscope.store.atomic import staging
    from isoscope.store.run import merge_states
    from isoscope.store.schema import STATE
    from isoscope.store.state import State

    target = check_target(output, overwrite)
    if not runs:
        raise ConfigError(
            "a merge needs at least 1 run, got 0",
            hint="name the run folders to merge",
            slug="nothing-to-merge",
        )
    loaded = [load(run) for run in runs]
    for run in loaded:
        if run.origin.kind == "sweep":
            raise MergeError(
                f"cannot merge {run.path.name!r}, which is a sweep, with other runs",
                hint="run one sweep with all --seeds and --weights under a new name instead",
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
    run: "str | os.PathLike[str] | Run",
    *,
    measures: Sequence[str] | None = None,
    sites: Sequence[str] | None = None,
) -> "Results[Reading]":
    """Return the readings of a run folder; measures not yet read come from its summaries."""
    from isoscope.display import READINGS, Results
    from isoscope.store import open_run

    found = open_run(run)
    options = options_of(found.settings)
    kept, left_out = list(found.readings), tuple(found.left_out)
    if measures is not None:
        names = measure_names(measures)
        have = {each.measure for each in kept}
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
            if each.measure == name or each.measure in companions(name)
        ]
        if not kept:
            raise nothing(missing)
    if sites is not None:
        _known_sites(sites, (each.site for each in kept))
        kept = [each for each in kept if each.site in sites]
    levels = isotropic_levels(kept, options)
    return Results(kept, READINGS, left_out=left_out, isotropic=levels)


def _known_sites(sites: Sequence[str], there: Iterable[str]) -> None:
    from isoscope.registry import unknown

    known = dict.fromkeys(there)
    for site in sites:
        if site not in known:
            raise unknown("site", site, known)
