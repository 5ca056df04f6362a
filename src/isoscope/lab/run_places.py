"""The summaries of a saved run, site by site, in the variant asked for."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from isoscope.accumulate import Accumulator
from isoscope.accumulate.survey import Kind, variants
from isoscope.registry import unknown
from isoscope.store.run import Run, load
from isoscope.types import CLASSES, VARIANTS


def run_of(run: str | os.PathLike[str] | Run) -> Run:
    """Return a run, read from its folder if it is not read yet."""
    return run if isinstance(run, Run) else load(run)


def places_of(
    run: Run, sites: Sequence[str] | None, variant: str
) -> Iterator[tuple[str, str, dict[Kind, Accumulator[Any]]]]:
    """Yield (site, variant, accumulators) of the sites named, or of all.

    Sites are read from disk one at a time.
    Matrices and vectors on disk have one variant only, `all`, and are given in it.
    """
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    for site in sites or ():
        if site not in run.sites:
            raise unknown("site", site, run.sites)
    for site in run.sites if sites is None else sites:
        held = run.survey_of(site).held
        for _, names, parts in variants(held):
            if variant in names:
                yield site, variant, parts
            elif not any((site, each) in held for each in CLASSES):
                yield site, "all", parts
