"""The difference of two readings: its interval, and how easily noise alone would give it."""

from math import hypot, sqrt

import numpy as np

from isoscope.accumulate.hashing import GROUPS
from isoscope.measures.interval import Spread
from isoscope.measures.statistics import Difference, quantile
from isoscope.types import Array

ROUNDING = 1e-6  # of a value: batches and threads move readings by less than that
Ends = tuple[float | None, float | None]


def paired(
    first: float, second: float, spreads: tuple[Spread, Spread], *, times: float = 1.0
) -> Difference:
    """Return first - times x second, both read off the same groups of documents.

    What a group adds to the error of the difference is the difference of what it adds to
    either; a group that only one of them has adds what it adds there.
    """
    ours, theirs, lost = _aligned(*spreads)
    parts = ours - times * theirs
    value = first - times * second
    freedom = len(parts) - lost
    error = float(sqrt(parts @ parts))
    if freedom < 1 or not np.isfinite(error):
        return Difference.unknown(value)
    reach = quantile(freedom) * error
    return Difference.of(value, (reach, reach), error, freedom)


def apart(
    first: float, second: float, ends: tuple[Ends, Ends], *, times: float = 1.0
) -> Difference:
    """Return first - times x second of readings that have nothing to do with each other.

    Variances add up, and so do squared distances from a value to the end of its interval;
    each end is taken on its own side, so that intervals need not be symmetric (Zou and
    Donner, 2008).
    """
    value = first - times * second
    (low, high), (other_low, other_high) = ends
    if low is None or high is None or other_low is None or other_high is None:
        return Difference.unknown(value)
    down = hypot(first - low, times * (other_high - second))
    up = hypot(high - first, times * (second - other_low))
    freedom = GROUPS - 1
    toward_zero = down if value > 0 else up
    error = toward_zero / quantile(freedom)
    return Difference.of(value, (down, up), error, freedom)


def same(first: float, second: float) -> bool:
    """Whether two values are equal but for rounding."""
    return abs(first - second) <= ROUNDING * max(abs(first), abs(second))


def _aligned(first: Spread, second: Spread) -> tuple[Array, Array, int]:
    """Return the parts of both, group by group, and how many degrees of freedom are lost."""
    folded = [int(each.keys.max(initial=0)) < GROUPS for each in (first, second)]
    keys = [each.keys.astype(np.uint64) for each in (first, second)]
    if folded[0] != folded[1]:  # one has so few documents that each is a group
        keys = [each % np.uint64(GROUPS) for each in keys]
    every = np.union1d(*keys)
    laid = [
        np.bincount(np.searchsorted(every, key), each.parts, len(every))
        for key, each in zip(keys, (first, second), strict=True)
    ]
    return laid[0], laid[1], max(first.lost, second.lost)
