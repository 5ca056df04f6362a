"""Differences with intervals: of two readings, of pairs, corrected for their number."""

from collections.abc import Sequence
from dataclasses import replace
from math import hypot, inf, sqrt
from statistics import fmean, stdev
from typing import Self

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS
from isoscope.measures.extrapolate import UNSURE
from isoscope.measures.interval import (
    Spread,
    effective_freedom,
    exact_quantile,
    quantile,
    two_sided,
)
from isoscope.types import Array

LEVEL = 0.05  # the chance of no difference below which something has changed
ROUNDING = 1e-6  # of a value: batches and threads move readings by less than that
NO_SPREAD = 1e-12  # of the values: differences of pairs that vary by less do not vary
Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class Difference:
    """A difference, its 95 % interval, and the chance of one as large if there were none.

    Interval and chance are None where they cannot be determined.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None  # two-sided, of this comparison alone
    p_holm: float | None = None  # corrected for all comparisons that were made

    @classmethod
    def of(cls, value: float, reach: tuple[float, float], error: float, freedom: int) -> Self:
        """Return a difference whose interval reaches that far down and up.

        Without any error, zero is certain to be chance and anything else certain not to be.
        """
        t = value / error if error else inf if value else 0.0
        return cls(value, value - reach[0], value + reach[1], two_sided(t, freedom))


def difference_by_group(
    first: float, second: float, spreads: tuple[Spread, Spread], *, times: float = 1.0
) -> Difference:
    """Return first - times x second, both read off the same groups of documents.

    What a group adds to the error of the difference is the difference of what it adds to
    either; a group that only one of them has adds what it adds there.
    """
    ours, theirs, lost = _align(*spreads)
    return _from_parts(first - times * second, ours - times * theirs, lost)


def _from_parts(value: float, parts: Array, lost: int) -> Difference:
    """Return a difference from what each group adds to its error."""
    freedom = effective_freedom(parts, lost)
    error = float(sqrt(parts @ parts))
    if freedom < 1 or not np.isfinite(error):
        return Difference(value)
    reach = quantile(freedom) * error
    return Difference.of(value, (reach, reach), error, int(freedom))


def difference_of_spreads(
    first: float, second: float, spreads: tuple[Spread, Spread], *, times: float = 1.0
) -> Difference:
    """Return first - times x second of independent readings whose groups are known."""
    ours, theirs = spreads
    parts = np.concatenate([ours.parts, times * theirs.parts])
    lost = max(ours.lost + theirs.lost, len(parts) - GROUPS + 1)
    return _from_parts(first - times * second, parts, lost)


def population_difference(
    first: float,
    second: float,
    spreads: tuple[Spread, Spread],
    *,
    paired: bool,
    times: float = 1.0,
) -> Difference:
    """Return first - times x second of plain readings, with an interval for the populations.

    The interval holds the difference of the readings too, and allows for an error of half
    of what two extrapolations differ by. Nothing has changed where it holds zero.
    """
    one, other = (
        value if spread.centre is None else spread.centre
        for value, spread in zip((first, second), spreads, strict=True)
    )
    between = difference_by_group if paired else difference_of_spreads
    gap = between(one, other, spreads, times=times)
    value = first - times * second
    if gap.low is None or gap.high is None or gap.p is None:
        return replace(gap, value=value)
    doubt = UNSURE * abs(spreads[0].correction - times * spreads[1].correction)
    low, high = min(gap.low - doubt, value), max(gap.high + doubt, value)
    return Difference(value, low, high, max(gap.p, LEVEL) if low <= 0 <= high else gap.p)


def independent_difference(
    first: float, second: float, ends: tuple[Ends, Ends], *, times: float = 1.0
) -> Difference:
    """Return first - times x second of two independent readings.

    Variances add up, and so do squared distances from a value to the end of its interval;
    each end is taken on its own side, so that intervals need not be symmetric (Zou and
    Donner, 2008).
    """
    value = first - times * second
    (low, high), (other_low, other_high) = ends
    if low is None or high is None or other_low is None or other_high is None:
        return Difference(value)
    down = hypot(first - low, times * (other_high - second))
    up = hypot(high - first, times * (second - other_low))
    freedom = GROUPS - 1
    error = (down if value > 0 else up) / quantile(freedom)
    return Difference.of(value, (down, up), error, freedom)


def is_same(first: float, second: float) -> bool:
    """Whether two values are equal but for rounding."""
    return abs(first - second) <= ROUNDING * max(abs(first), abs(second))


def _align(first: Spread, second: Spread) -> tuple[Array, Array, int]:
    """Return the parts of both, group by group, and how many degrees of freedom are lost."""
    folded = [int(each.keys.max(initial=0)) < GROUPS for each in (first, second)]
    keys = [each.keys.astype(np.uint64) for each in (first, second)]
    if folded[0] != folded[1]:  # one has few documents, and each of them is a group
        keys = [each % np.uint64(GROUPS) for each in keys]
    every = np.union1d(*keys)
    aligned = [
        np.bincount(np.searchsorted(every, key), each.parts, len(every))
        for key, each in zip(keys, (first, second), strict=True)
    ]
    return aligned[0], aligned[1], max(first.lost, second.lost)


def paired_difference(values: Sequence[float], others: Sequence[float]) -> Difference:
    """Return the mean difference of pairs, with Student's interval.

    One pair has no spread, and neither have differences that are all the same, as of two
    seeds and few held-out examples: they have no interval.
    """
    apart = [a - b for a, b in zip(values, others, strict=True)]
    middle = fmean(apart)
    size = max(map(abs, (*values, *others)))
    if len(apart) < 2 or stdev(apart) <= NO_SPREAD * size:
        return Difference(middle)
    error, freedom = stdev(apart) / sqrt(len(apart)), len(apart) - 1
    reach = exact_quantile(freedom) * error
    return Difference.of(middle, (reach, reach), error, freedom)


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for their number, however they depend on each other.

    Holm (1979): the smallest counts times m, the next times m - 1, and so on; none is
    smaller than the one before it. None stands for a comparison without a p-value.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, index) for index, p in enumerate(chances) if p is not None)
    corrected: list[float | None] = [None] * len(chances)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        corrected[index] = largest
    return corrected
