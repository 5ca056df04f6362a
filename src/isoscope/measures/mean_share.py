"""Mean share: how much of a row's squared length is the same for all rows?"""

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.view import Masses
from isoscope.types import Array


def squared_lengths(seen: Masses) -> float:
    """Return the sum of |x|^2 over all rows."""
    return float(seen.trace.sum() + seen.sizes @ np.vecdot(seen.mean, seen.mean))


def sums_without_each(seen: Masses) -> tuple[Array, Array, Array]:
    """Return |sum x|^2, sum of |x|^2 and number of rows without each group, (groups,) each."""
    total = sum_of_others(seen.sizes[:, None] * seen.mean)  # (groups, d)
    lengths = sum_of_others(seen.trace + seen.sizes * np.vecdot(seen.mean, seen.mean))
    return np.vecdot(total, total), lengths, seen.sizes.sum() - seen.sizes


@measure(
    "mean-share",
    reads=Masses,
    isotropic=lambda n, _d: 1 / n,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="mu2018",
    formula="|mean|^2 / mean of |x|^2",
    misleads="Long rows weigh more: a few of great norm decide it, where the mean cosine "
    "counts all rows alike.",
    bounds=(0.0, 1.0),
)
def mean_share(seen: Masses) -> float:
    """Share of the squared length of the rows that is their common mean vector."""
    mean = seen.sizes @ seen.mean / seen.sizes.sum()
    lengths = squared_lengths(seen)
    if lengths <= 0:
        raise UndefinedError(
            "mean-share needs rows that are not zero, got only zeros",
            hint="check how the vectors were made",
            slug="only-zeros",
        )
    return float(mean @ mean * seen.sizes.sum() / lengths)


@at_once(mean_share)
def _without_each(seen: Masses) -> Array:
    total, lengths, n = sums_without_each(seen)
    return np.where(lengths > 0, total / n / lengths, np.nan)
