"""95 % intervals: Student's t, and how far a reading moves without one group of documents."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import atan, cos, exp, floor, isinf, log, pi, sin, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any, TypeVar

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.view import GroupView
from isoscope.types import Array

LEAST_DOCUMENTS = 8
OUTSIDE = 0.05  # what an interval may miss, on both sides together
FARTHEST = 300.0  # a reach in the logarithm beyond which an end is not finite
_SERIES = 6.0  # degrees of freedom from which the series of `quantile` is exact enough
_Z = NormalDist().inv_cdf(1 - OUTSIDE / 2)
V = TypeVar("V", bound=GroupView)
AtOnce = Callable[[Any], Array]  # of a view: a measure without each of its groups, (groups,)
AT_ONCE: dict[Callable[..., float], AtOnce] = {}  # by the function of the measure


def quantile(freedom: float, outside: float = OUTSIDE) -> float:
    """Return the t that intervals use, by Cornish-Fisher: the 97.5 % point of Student's t.

    With another chance `outside`, on both sides together, the point of that.

    It is within 5e-5 of `exact_quantile` from six degrees on and within 2e-8 at 31, the usual
    number. Intervals have eight groups at least, and every published one was computed with it:
    the exact point would move their ends in the eighth digit, or in the fifth at eight groups.
    Below six degrees it is interpolated between the exact points of whole degrees, linearly
    in one over the degrees.
    """
    z, v = _Z if outside == OUTSIDE else NormalDist().inv_cdf(1 - outside / 2), freedom
    if v < _SERIES:
        return _between_degrees(lambda whole: exact_quantile(whole, outside), v)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / v + second / v**2 + third / v**3 + fourth / v**4


def _between_degrees(of: Callable[[int], float], freedom: float) -> float:
    """Interpolate a function of whole degrees, linearly in one over the degrees."""
    below, above = floor(freedom), floor(freedom) + 1
    low, high = of(below), of(above)
    return low + (high - low) * (1 / below - 1 / freedom) / (1 / below - 1 / above)


def far_quantile(near: float, freedom: float) -> float:
    """Return how far an interval reaches on one side if it reaches further on the other.

    In standard errors. An interval that is extended to hold a plain value far from the
    estimate cannot miss on that side; the 5 % that it may miss in all are then left out on
    the other one.

    >>> round(far_quantile(2.0, 30.0), 4), round(far_quantile(9.0, 30.0), 4)
    (2.0423, 1.6973)
    """
    usual = quantile(freedom)
    if near <= usual:
        return usual
    left = _between_degrees(lambda whole: two_sided(near, whole), freedom) / 2
    return min(quantile(freedom, 2 * (OUTSIDE - left)), usual)


def exact_quantile(freedom: int, outside: float = OUTSIDE) -> float:
    """Return the t that is exceeded, on both sides together, with this chance.

    For few degrees of freedom, such as those of three or five seeds, where the series of
    `quantile` is off by up to a tenth.

    >>> round(exact_quantile(4), 4)
    2.7764
    """
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > outside:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, freedom) > outside else (low, middle)
    return high


def mean_and_interval(
    found: Sequence[float],
) -> tuple[float, float | None, float | None, float | None]:
    """Return mean, standard deviation and 95 % interval of the mean; None of a single one.

    >>> mean_and_interval([1.0])
    (1.0, None, None, None)
    """
    mean, n = fmean(found), len(found)
    if n < 2:
        return mean, None, None, None
    sd = stdev(found)
    reach = exact_quantile(n - 1) * sd / sqrt(n)
    return mean, sd, mean - reach, mean + reach


def two_sided(t: float, freedom: int) -> float:
    """Return the chance that Student's t is at least this far from zero.

    The finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4, exact for whole degrees.

    >>> round(two_sided(2.776445, 4), 6)
    0.05
    """
    if isinf(t):
        return 0.0
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


@dataclass(frozen=True)
class Spread:
    """What each group of documents adds to the error of a value; their squares add up.

    Two readings of the same documents are off together: their spreads are subtracted group
    by group before the squares are taken.
    """

    parts: Array  # (groups,)
    keys: Array  # (groups,) which groups they are
    lost: int = 1  # how many degrees of freedom fewer than groups there are
    centre: float | None = None  # the value it is the error of, where that is not the reading
    correction: float = 0.0  # what was extrapolated to get there

    @property
    def error(self) -> float:
        """The standard error of the value."""
        return float(sqrt(self.parts @ self.parts))

    @property
    def freedom(self) -> float:
        """The degrees of freedom of that error."""
        return effective_freedom(self.parts, self.lost)


def effective_freedom(parts: Array, lost: int = 1) -> float:
    """Return the degrees of freedom of a sum of squares of which few may be nearly all.

    Satterthwaite (1946): (sum v)^2 / sum v^2 for parts of variance v, of which the fourth
    power of a part estimates 3 v^2. At most as many as there are parts, less those lost.

    >>> effective_freedom(np.ones(32)), round(effective_freedom(np.r_[9.0, np.ones(31)]), 6)
    (31.0, 5.708738)
    """
    most = float(len(parts) - lost)
    squares = np.square(parts)
    total = squares.sum()
    if not 0 < total < np.inf:
        return most
    shares = squares / total
    return min(most, 3 / float(shares @ shares))


def influences(value: float, without: Array, sizes: Array) -> Array:
    """What each group adds to the error of a value, from the values without each of them.

    The delete-a-group jackknife. How far a value moves when a group leaves counts in full
    however large the group is: a large one has pulled the value towards itself, and the
    rest alone shows how far. Groups of size zero are no groups.
    """
    influence = value - without
    there = sizes > 0
    # what all groups share is bias of the method, not spread
    influence = np.where(there, influence - influence[there].mean(), 0.0)
    groups = np.count_nonzero(there)
    return influence * sqrt((groups - 1) / groups)


def standard_error(value: float, without: Array, sizes: Array) -> float:
    """Standard error of a value from its values without each group."""
    parts = influences(value, without, sizes)
    return float(sqrt(parts @ parts))


def around(
    value: float, error: float, groups: int, *, logarithmic: bool = False
) -> tuple[float, float]:
    """Return the interval around a value; in the logarithm `error` is relative."""
    reach = quantile(groups - 1) * error
    if logarithmic:
        return value * exp(-reach), value * exp(reach)
    return value - reach, value + reach


def enough_groups(view: GroupView) -> bool:
    """Whether there are documents and groups enough for an interval."""
    return min(view.documents, view.groups) >= LEAST_DOCUMENTS


def at_once(compute: Callable[..., float]) -> Callable[[AtOnce], AtOnce]:
    """File what returns a measure without each group in one go, instead of one by one.

    The same numbers but for rounding; NaN where it is not defined without a group.
    """

    def file(all_of_them: AtOnce) -> AtOnce:
        AT_ONCE[compute] = all_of_them
        return all_of_them

    return file


def sum_of_others(parts: Array) -> Array:
    """Return for each group the sum over all others, (groups, ...), added in their order.

    >>> sum_of_others(np.array([1.0, 2.0, 4.0])).tolist()
    [6.0, 5.0, 3.0]
    """
    totals = np.zeros(parts.shape)
    for group, part in enumerate(parts):
        totals[:group] += part
        totals[group + 1 :] += part
    return totals


def values_without(view: V, compute: Callable[[V], float]) -> Array:
    """Return a measure without each group, (groups,), worked out once per view.

    Several readings ask for the same: a measure, and all that are corrected by it.
    """
    same: Hashable = compute
    if isinstance(compute, partial):
        settings = tuple(sorted(compute.keywords.items()))
        same = (compute.func, compute.args, settings) if settings else compute.func
    found = view.known_without.get(same)
    if found is None:
        all_of_them = AT_ONCE.get(same) if callable(same) else None
        if all_of_them is None:
            found = view.values_without(compute)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):  # undefined without a group
                found = all_of_them(view)
        view.known_without[same] = found
    return found


def without_each(view: V, compute: Callable[[V], float]) -> Array | None:
    """Return the measure without each group; None where it has no interval."""
    if not enough_groups(view):
        return None
    try:
        without = values_without(view, compute)
    except (TooFewRowsError, UndefinedError):
        return None
    return without if np.isfinite(without).all() else None


def spread(view: V, compute: Callable[[V], float], value: float) -> Spread | None:
    """Return what each group adds to the error of a reading; None without an interval."""
    without = without_each(view, compute)
    return None if without is None else _spread_of(view, value, without)


def interval(
    view: V,
    compute: Callable[[V], float],
    value: float,
    *,
    logarithmic: bool = False,
    skewed: bool = False,
) -> tuple[float, float] | None:
    """Return the 95 % interval of a reading; None where there are too few documents."""
    without = without_each(view, compute)
    return interval_from(view, value, without, logarithmic=logarithmic, skewed=skewed)


def interval_and_spread(
    view: V,
    compute: Callable[[V], float],
    value: float,
    *,
    logarithmic: bool = False,
    skewed: bool = False,
) -> tuple[tuple[float, float] | None, Spread | None]:
    """Return both the interval of a reading and its spread, computed once."""
    without = without_each(view, compute)
    if without is None:
        return None, None
    around = interval_from(view, value, without, logarithmic=logarithmic, skewed=skewed)
    return around, _spread_of(view, value, without)


def interval_from(
    view: GroupView,
    value: float,
    without: Array | None,
    *,
    logarithmic: bool = False,
    skewed: bool = False,
) -> tuple[float, float] | None:
    """Return the 95 % interval of a reading from its values without each group.

    Where few groups are far above the others, those that were not drawn may be too: with
    `skewed` the upper end reaches further.
    """
    if without is None:
        return None
    if logarithmic and value > 0 and (without > 0).all():
        found = _spread_of(view, log(value), np.log(without))
        reach = quantile(found.freedom) * found.error
        up = reach + (beyond(found) if skewed else 0.0)
        if up < FARTHEST:
            return value * exp(-reach), value * exp(up)
    found = _spread_of(view, value, without)
    reach = quantile(found.freedom) * found.error
    return value - reach, value + reach + (beyond(found) if skewed else 0.0)


def _spread_of(view: GroupView, value: float, without: Array) -> Spread:
    return Spread(influences(value, without, view.sizes) * view.thinning, view.keys)


def beyond(found: Spread) -> float:
    """Return how much further an interval reaches up where the parts are skewed.

    Hall (1992): Student's t of a mean of skewness g is t + g (2 t^2 + 1) / 6 to the next
    order. Only ever outward: the skewness of few groups is itself uncertain.
    """
    error = found.error
    if not 0 < error < np.inf:
        return 0.0
    skewness = float((found.parts**3).sum()) / error**3
    return max(skewness, 0.0) * (2 * quantile(found.freedom) ** 2 + 1) / 6 * error
