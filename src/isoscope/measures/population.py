"""The population's value behind a plain reading: what its interval is an interval for."""

from collections.abc import Callable
from math import exp, log

import numpy as np

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.base import MEASURES, Measure
from isoscope.measures.extrapolate import Estimate, by_halves
from isoscope.measures.interval import FARTHEST, Spread, interval_and_spread, quantile
from isoscope.measures.isoscore_debiased import log_spread, unbiased_ratio
from isoscope.measures.jackknife import by_jackknife
from isoscope.measures.view import GroupView, Halves, Spectrum, View
from isoscope.types import DEBIASED_TWINS

_STEP = 1e-3  # in the logarithm of the participation ratio, of a slope


def estimate(
    record: Measure, seen: View, compute: Callable[..., float], *, published: bool
) -> Estimate | None:
    """Return the value that a plain reading would have with endless documents.

    Functions of the participation ratio have it from the unbiased traces, other measures of
    the spectrum by halves, measures of sums from the debiased measure of the same sums,
    measures of attention heads by the jackknife. None
    where nothing is known of a bias, or there are too few documents to tell it.
    """
    try:
        if isinstance(seen, Spectrum) and seen.summaries is not None:
            exact = record.by_participation and not published
            found = _by_participation(seen, compute) if exact else None
            return found or by_halves(seen, compute)
        if isinstance(seen, GroupView) and record.corrected is not None:
            return by_jackknife(seen, compute, record.corrected)
        twin = MEASURES.get(DEBIASED_TWINS.get(record.name, ""))
        if isinstance(seen, GroupView) and twin is not None and twin.reads is record.reads:
            return _by_twin(seen, twin)
    except (TooFewRowsError, UndefinedError):
        pass
    return None


def _by_twin(seen: GroupView, twin: Measure) -> Estimate | None:
    """Return the debiased measure of the same sums."""
    value = twin.compute(seen)
    ends, parts = interval_and_spread(seen, twin.compute, value)
    return None if ends is None or parts is None else Estimate(value, ends, parts)


def _by_participation(seen: Spectrum, compute: Callable[..., float]) -> Estimate | None:
    """Return a function of the participation ratio at its unbiased estimate."""
    assert seen.summaries is not None
    if seen.width < 2:
        return None
    halves = seen.summaries.view(Halves)
    ratio = unbiased_ratio(halves)
    found = log_spread(halves)
    if found is None or not np.isfinite(found.error) or ratio <= 0:
        return None
    reach = quantile(found.freedom) * found.error
    if reach > FARTHEST:
        return None

    def at(logarithm: float) -> float:
        return compute(seen.with_participation(exp(logarithm)))

    centre = log(ratio)
    most = min(centre, log(seen.width) - _STEP)  # beyond the width nothing moves any more
    slope = (at(most + _STEP) - at(most - _STEP)) / (2 * _STEP)
    low, high = sorted((at(centre - reach), at(centre + reach)))
    parts = Spread(found.parts * slope, found.keys, found.lost)
    return Estimate(at(centre), (low, high), parts)
