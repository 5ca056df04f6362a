"""A reading without the bias of few documents, from its values without each of their groups.

Quenouille's jackknife takes away what goes with one over the number of documents. A length is
corrected in its square, whose bias is just that, and a participation ratio in its logarithm.
"""

from collections.abc import Callable
from math import exp, log, sqrt
from typing import Any

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.measures.extrapolate import Estimate
from isoscope.measures.interval import Spread, influences, quantile, without_each
from isoscope.measures.view import GroupView

_STEP = 1e-4  # of the scale, for a slope
_LEAST = 1e-12


@dataclass(frozen=True)
class Scale:
    """What a value is corrected as: there and back, for a value of some view."""

    there: Callable[[float, Any], float]
    back: Callable[[float, Any], float]


PLAIN = Scale(lambda value, _: value, lambda value, _: value)
SQUARE = Scale(lambda value, _: value * value, lambda square, _: sqrt(max(square, 0.0)))
# of an IsoScore: the participation ratio, 1 to d, in its logarithm
RATIO = Scale(
    lambda value, seen: log(max(1 + value * (seen.width - 1), _LEAST)),
    lambda ratio, seen: (exp(min(ratio, log(seen.width))) - 1) / max(seen.width - 1, 1),
)


def by_jackknife(
    seen: GroupView, compute: Callable[..., float], scale: Scale
) -> Estimate | None:
    """Return the value that endless documents would have, with its interval.

    Groups may have different sizes: G t - sum of (1 - n_g / n) t without g. None where there
    are too few documents.
    """
    without = without_each(seen, compute)
    if without is None:
        return None
    plain = compute(seen)
    whole = scale.there(plain, seen)
    others = [scale.there(float(each), seen) for each in without]
    shares = seen.sizes / seen.sizes.sum()
    centre = seen.groups * whole - sum((1 - shares) * others)
    parts = influences(whole, np.array(others), seen.sizes) * seen.thinning
    spread = Spread(parts, seen.keys)
    reach = quantile(spread.freedom) * spread.error
    ends = scale.back(centre - reach, seen), scale.back(centre + reach, seen)
    value = scale.back(centre, seen)
    step = _STEP * max(abs(whole), _LEAST)
    slope = (scale.back(whole + step, seen) - scale.back(whole - step, seen)) / (2 * step)
    correction = value - plain
    return Estimate(value, ends, Spread(parts * slope, seen.keys, correction=correction))
