"""95 % intervals: how far a reading moves when one group of documents is left out."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

import numpy as np

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.statistics import quantile
from isoscope.types import Array

LEAST_DOCUMENTS = 8
FARTHEST = 300.0  # a reach in the logarithm beyond which an end is not finite


@dataclass(frozen=True)
class Spread:
    """What each group of documents adds to the error of a value; their squares add up.

    Two readings of the same documents are off together: their spreads are subtracted group
    by group before the squares are taken.
    """

    parts: Array  # (groups,)
    keys: Array  # (groups,) which groups they are
    lost: int = 1  # how many degrees of freedom fewer than groups there are

    @property
    def error(self) -> float:
        """The standard error of the value."""
        return float(sqrt(self.parts @ self.parts))

    @property
    def freedom(self) -> int:
        """The degrees of freedom of that error."""
        return len(self.parts) - self.lost


def influences(value: float, without: Array, sizes: Array) -> Array:
    """What each group adds to the error of a value, from the values without each of them.

    How far a value moves when a group leaves is the group's share of the sum of
    influences; groups are independent, so the squares add up.
    """
    influence = (value - without) * (sizes.sum() - sizes) / sizes.sum()
    influence -= influence.mean()  # what all groups share is bias of the method, not spread
    groups = len(sizes)
    return influence * sqrt(groups / (groups - 1))


def standard_error(value: float, without: Array, sizes: Array) -> float:
    """Standard error of a value from its values without each group."""
    parts = influences(value, without, sizes)
    return float(sqrt(parts @ parts))


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


def _without_each(view: Any, compute: Callable[[Any], float]) -> Array | None:
    """Return the measure without each group; None where that tells nothing."""
    if view.documents < LEAST_DOCUMENTS or view.groups < LEAST_DOCUMENTS:
        return None
    try:
        without = left_out_in_turn(view, compute)
    except (TooFewRowsError, UndefinedError):
        return None
    return without if np.isfinite(without).all() else None


def spread(view: Any, compute: Callable[[Any], float], value: float) -> Spread | None:
    """Return what each group adds to the error of a reading; None without an interval."""
    without = _without_each(view, compute)
    if without is None:
        return None
    thinning = getattr(view, "thinning", 1.0)
    return Spread(influences(value, without, view.sizes) * thinning, view.keys)


def interval(
    view: Any, compute: Callable[[Any], float], value: float, *, logarithmic: bool
) -> tuple[float, float] | None:
    """Return the 95 % interval of a reading; None where there are too few documents."""
    without = _without_each(view, compute)
    if without is None:
        return None
    thinning = getattr(view, "thinning", 1.0)  # where the groups are of a sample
    if logarithmic and value > 0 and (without > 0).all():
        error = standard_error(log(value), np.log(without), view.sizes) * thinning
        if quantile(view.groups - 1) * error < FARTHEST:
            return around(value, error, view.groups, logarithmic=True)
    error = standard_error(value, without, view.sizes) * thinning
    return around(value, error, view.groups, logarithmic=False)
