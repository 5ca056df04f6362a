"""Norm spread: how different are the lengths of the rows?"""

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.view import NormMoments


@measure(
    "norm-spread",
    reads=NormMoments,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation", "scale"},
    cite="ethayarajh2019",
    formula="standard deviation of |x| over its mean",
    misleads="Says nothing of direction. One sink token a document can make it large.",
    logarithmic=True,
    skewed=True,
    bounds=(0.0, None),
)
def norm_spread(seen: NormMoments) -> float:
    """Standard deviation of the norms over their mean."""
    n = seen.sizes.sum()
    mean = seen.sizes @ seen.mean / n
    if mean <= 0 or n < 2:
        raise UndefinedError(
            "norm-spread needs at least 2 rows that are not all zero, got fewer",
            hint="check how the vectors were made",
            slug="only-zeros",
        )
    spread = seen.spread.sum() + seen.sizes @ (seen.mean - mean) ** 2
    return float(np.sqrt(spread / (n - 1)) / mean)
