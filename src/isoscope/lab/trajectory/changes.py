"""What changes when: differences between steps paired by document, onsets, jumps, metrics."""

from collections.abc import Mapping, Sequence
from math import isfinite, sqrt

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS
from isoscope.lab.trajectory.lead import leads, move_together
from isoscope.lab.trajectory.onset import Difference as StepDifference
from isoscope.lab.trajectory.onset import find_onset
from isoscope.lab.trajectory.results import Course, MetricLink, OnsetFound, SuddenFound
from isoscope.lab.trajectory.sudden import find_sudden
from isoscope.measures.difference import (
    Difference,
    difference_by_group,
    population_difference,
)
from isoscope.measures.interval import Spread, effective_freedom
from isoscope.store.series import MetricCurve
from isoscope.types import Array, Reading

LEAST = 3  # steps of a curve that can have a trend


@dataclass(frozen=True)
class StepReadings:
    """The readings of a step, and what their intervals are made of."""

    step: int
    readings: Sequence[Reading]
    spreads: Mapping[tuple[str, str, str], Spread]  # by site, variant and measure


Key = tuple[str, str, str, str]  # site, variant, group, measure


def find_courses(
    steps: Sequence[StepReadings], metrics: Sequence[MetricCurve] = ()
) -> list[Course]:
    """Return one record per measure, site, variant and group that all steps have."""
    curves = _curves(steps)
    return [
        _course(steps, key, found, metrics)
        for key, found in curves.items()
        if len(found) == len(steps) and _is_own(key, curves)
    ]


def _curves(steps: Sequence[StepReadings]) -> dict[Key, list[Reading]]:
    found: dict[Key, list[Reading]] = {}
    for step in steps:
        for each in step.readings:
            key = each.site, each.variant, each.group, each.measure
            found.setdefault(key, []).append(each)
    return found


def missing_somewhere(steps: Sequence[StepReadings]) -> list[str]:
    """Return which curves have no record, since some steps have no such reading."""
    return [
        f"{measure} at {site}: read at {len(found)} of {len(steps)} steps only"
        for (site, variant, group, measure), found in _curves(steps).items()
        if len(found) < len(steps) and variant == "all" and not group
    ]


def _is_own(key: Key, curves: Mapping[Key, Sequence[Reading]]) -> bool:
    """Whether a variant differs from all rows; else its record would be the same again."""
    site, variant, group, measure = key
    whole = curves.get((site, "all", group, measure))
    if variant == "all" or whole is None:
        return True
    mine = curves[key]
    return [each.value for each in mine] != [each.value for each in whole]


def _course(
    steps: Sequence[StepReadings],
    key: Key,
    found: Sequence[Reading],
    metrics: Sequence[MetricCurve],
) -> Course:
    site, variant, group, measure = key
    numbers = [each.step for each in steps]
    values = [each.value for each in found]
    own = None if group else (site, variant, measure)
    spreads = [None if own is None else each.spreads.get(own) for each in steps]
    whole = group == "" and variant == "all"
    return Course(
        site=site,
        variant=variant,
        group=group,
        measure=measure,
        steps=numbers,
        values=values,
        low=[each.low for each in found],
        high=[each.high for each in found],
        differences=[
            _difference(value, values[0], spread, spreads[0])
            for value, spread in zip(values[1:], spreads[1:], strict=True)
        ],
        onset=_onset(numbers, values, spreads),
        sudden=_sudden(numbers, values, spreads) if whole else NOT_LOOKED_FOR,
        metrics=[_link(numbers, values, each) for each in metrics] if whole else [],
    )


NOT_LOOKED_FOR = SuddenFound(None, None, None, None, None, "looked for among all rows only")


def _difference(
    value: float, first: float, spread: Spread | None, begun: Spread | None
) -> Difference:
    """Return what a step differs by from the first, paired by document group."""
    if spread is None or begun is None:
        return Difference(value - first)
    if spread.centre is not None:
        return population_difference(value, first, (spread, begun), paired=True)
    return difference_by_group(value, first, (spread, begun))


def aligned_parts(spreads: Sequence[Spread]) -> tuple[Array, int]:
    """Return the parts of several spreads group by group, (spreads, groups), and what is lost.

    A group that a spread does not have adds nothing to it.
    """
    folded = [int(each.keys.max(initial=0)) < GROUPS for each in spreads]
    keys = [each.keys.astype(np.uint64) for each in spreads]
    if any(folded) and not all(folded):
        keys = [each % np.uint64(GROUPS) for each in keys]
    every = np.unique(np.concatenate(keys))
    parts = [
        np.bincount(np.searchsorted(every, key), each.parts, len(every))
        for key, each in zip(keys, spreads, strict=True)
    ]
    return np.array(parts), max(each.lost for each in spreads)


def _onset(
    steps: Sequence[int], values: Sequence[float], spreads: Sequence[Spread | None]
) -> OnsetFound:
    known = [each for each in spreads if each is not None]
    if len(known) < len(spreads):
        return OnsetFound(None, None, "no interval of some of the steps")
    parts, lost = aligned_parts(known)
    apart = parts[1:] - parts[0]  # (steps - 1, groups)
    differences = [
        StepDifference(
            value - values[0],
            error if isfinite(error := sqrt(float(row @ row))) else None,
            effective_freedom(row, lost),
        )
        for value, row in zip(values[1:], apart, strict=True)
    ]
    found = find_onset(list(steps), differences, apart)
    p = None if found.step is None else found.p[list(steps).index(found.step) - 1]
    return OnsetFound(found.step, p, found.note)


def _sudden(
    steps: Sequence[int], values: Sequence[float], spreads: Sequence[Spread | None]
) -> SuddenFound:
    if len(steps) < LEAST:
        note = f"a trend needs at least {LEAST} checkpoints, got {len(steps)}"
        return SuddenFound(None, None, None, None, None, note)
    known = [each for each in spreads if each is not None]
    errors = _own_errors(known) if len(known) == len(spreads) else None
    found = find_sudden(list(steps), list(values), errors)
    return SuddenFound(found.step, found.low, found.high, found.size, found.p, found.note)


def _own_errors(spreads: Sequence[Spread]) -> list[float]:
    """Return the errors of values as far as steps do not share them.

    Documents are the same at every step, so that most of an error is of all steps together
    and moves no step against its neighbours. Of two neighbours the error of their difference
    is the part of both that they do not share.
    """
    parts, _ = aligned_parts(spreads)
    apart = np.linalg.norm(np.diff(parts, axis=0), axis=1) / sqrt(2)  # (steps - 1,)
    beside = np.vstack([np.r_[apart[:1], apart], np.r_[apart, apart[-1:]]])
    return [float(each) for each in np.sqrt(np.square(beside).mean(axis=0))]


def _link(steps: Sequence[int], values: Sequence[float], metric: MetricCurve) -> MetricLink:
    """Return how a curve and a metric move together, at the steps that both have."""
    at = dict(zip(steps, values, strict=True))
    pairs = [
        (step, at[step], value)
        for step, value in zip(metric.steps, metric.values, strict=True)
        if step in at
    ]
    if not pairs:
        note = f"no checkpoint that was measured has a value of {metric.name}"
        return MetricLink(metric.name, None, None, None, None, None, 0, note)
    both, ours, theirs = (list(each) for each in zip(*pairs, strict=True))
    together, lead = move_together(both, ours, theirs), leads(both, ours, theirs)
    notes = dict.fromkeys(note for note in (together.note, lead.note) if note)
    return MetricLink(
        metric=metric.name,
        correlation=together.correlation,
        p=together.p,
        lag=lead.lag,
        lead_correlation=lead.correlation,
        lead_p=lead.p,
        steps=len(both),
        note="; ".join(notes),
    )
