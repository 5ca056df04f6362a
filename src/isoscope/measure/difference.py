"""The difference of two readings: its interval, and how easily noise alone would give it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan, cos, hypot, pi, sin, sqrt

import numpy as np

from isoscope.accumulate.hashing import GROUPS
from isoscope.measure.interval import Spread, quantile
from isoscope.types import Array

ROUNDING = 1e-6  # of a value: batches and threads move readings by less than that
Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class Gap:
    """A difference, its 95 % interval, and the chance of one as large if there were none."""

    value: float
    low: float | None
    high: float | None
    chance: float | None  # two-sided p-value


def paired(
    first: float, second: float, spreads: tuple[Spread, Spread], *, times: float = 1.0
) -> Gap:
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
        return Gap(value, None, None, None)
    reach = quantile(freedom) * error
    return Gap(value, value - reach, value + reach, _chance(value, error, freedom))


def apart(first: float, second: float, ends: tuple[Ends, Ends], *, times: float = 1.0) -> Gap:
    """Return first - times x second of readings that have nothing to do with each other.

    Variances add up, and so do squared distances from a value to the end of its interval;
    each end is taken on its own side, so that intervals need not be symmetric (Zou and
    Donner, 2008).
    """
    value = first - times * second
    (low, high), (other_low, other_high) = ends
    if low is None or high is None or other_low is None or other_high is None:
        return Gap(value, None, None, None)
    down = hypot(first - low, times * (other_high - second))
    up = hypot(high - first, times * (second - other_low))
    freedom = GROUPS - 1
    toward_zero = down if value > 0 else up
    error = toward_zero / quantile(freedom)
    return Gap(value, value - down, value + up, _chance(value, error, freedom))


def same(first: float, second: float) -> bool:
    """Whether two values are equal but for rounding."""
    return abs(first - second) <= ROUNDING * max(abs(first), abs(second))


def holm(chances: Sequence[float]) -> list[float]:
    """Return p-values corrected for how many there are, however they depend on each other.

    Holm (1979): the smallest counts times m, the next times m - 1, and so on; none is
    smaller than the one before it.
    """
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    corrected = [0.0] * len(chances)
    so_far = 0.0
    for rank, place in enumerate(order):
        so_far = max(so_far, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = so_far
    return corrected


def two_sided(t: float, freedom: int) -> float:
    """Return the chance that Student's t is at least this far from zero.

    The finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4, exact for whole degrees.
    """
    angle = atan(abs(t) / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for step in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (step - 1) / step
    inside = sin(angle) * total
    if odd:
        inside = 2 / pi * (angle + inside)
    return min(max(1.0 - inside, 0.0), 1.0)


def _chance(value: float, error: float, freedom: int) -> float:
    if error == 0:
        return 1.0 if value == 0 else 0.0
    return two_sided(value / error, freedom)


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
