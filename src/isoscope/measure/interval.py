"""95 % intervals: how far a reading moves when one group of documents is left out."""

from collections.abc import Callable
from math import exp, log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.types import Array

LEAST_DOCUMENTS = 8
_Z = NormalDist().inv_cdf(0.975)
FARTHEST = 300.0  # a reach in the logarithm beyond which an end is no number any more


def quantile(freedom: float) -> float:
    """The 97.5 % point of Student's t, by Cornish-Fisher; within 1e-3 from six degrees on."""
    z, v = _Z, freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / v + second / v**2 + third / v**3 + fourth / v**4


def standard_error(value: float, without: Array, sizes: Array) -> float:
    """Standard error of a value from its values without each group.

    How far a value moves when a group leaves is the group's share of the sum of
    influences; groups are independent, so the squares add up.
    """
    influence = (value - without) * (sizes.sum() - sizes) / sizes.sum()
    influence -= influence.mean()  # what all groups share is bias of the method, not spread
    groups = len(sizes)
    return float(sqrt(groups / (groups - 1) * (influence @ influence)))


def around(
    value: float, error: float, groups: int, *, logarithmic: bool
) -> tuple[float, float]:
    """Return the interval around a value; in the logarithm `error` is relative."""
    reach = quantile(groups - 1) * error
    if logarithmic:
        return value * exp(-reach), value * exp(reach)
    return value - reach, value + reach


def left_out_in_turn(view: Any, compute: Callable[[Any], float]) -> Array:
    """Return the measure without each group."""
    return np.array([compute(view.without(group)) for group in range(view.groups)])


def interval(
    view: Any, compute: Callable[[Any], float], value: float, *, logarithmic: bool
) -> tuple[float, float] | None:
    """Return the 95 % interval of a reading; None where there are too few documents."""
    if view.documents < LEAST_DOCUMENTS or view.groups < LEAST_DOCUMENTS:
        return None
    try:
        without = left_out_in_turn(view, compute)
    except (TooFewRowsError, UndefinedError):
        return None
    if not np.isfinite(without).all():
        return None
    thinning = getattr(view, "thinning", 1.0)  # where the groups are of a sample
    if logarithmic and value > 0 and (without > 0).all():
        error = standard_error(log(value), np.log(without), view.sizes) * thinning
        if quantile(view.groups - 1) * error < FARTHEST:
            return around(value, error, view.groups, logarithmic=True)
    error = standard_error(value, without, view.sizes) * thinning
    return around(value, error, view.groups, logarithmic=False)
