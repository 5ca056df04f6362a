"""Outlier share: how much of the mean cosine is owed to three dimensions?"""

import numpy as np

from isoscope.accumulate.directions import contributions
from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.view import Units

TOP = 3


@measure(
    "outlier-share",
    reads=Units,
    isotropic=None,
    collapsed=None,
    unmoved_by={"scale"},
    cite="timkey2021",
    formula="sum of the 3 largest c_j over sum of all, c_j = (sum_i u_ij)^2 - sum_i u_ij^2",
    misleads="Where the mean cosine is near zero it is a ratio of two small numbers and may "
    "exceed 1. Where dimensions contribute alike, the top three are picked from noise, and the "
    "interval is too narrow. Depends on the basis, as its question does.",
)
def outlier_share(seen: Units) -> float:
    """Share of the mean cosine owed to the three dimensions that contribute most."""
    parts = contributions(seen.total, seen.energy)
    whole = parts.sum()
    if abs(whole) <= 1e-9 * seen.count:
        raise UndefinedError(
            "outlier-share needs a mean cosine that is not zero, got zero",
            hint="there is no common direction to explain",
            slug="no-cosine",
        )
    return float(np.sort(parts)[-TOP:].sum() / whole)
