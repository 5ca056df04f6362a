"""Uniformity: how evenly do the directions cover the sphere?"""

import numpy as np

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import measure
from isoscope.measures.view import Pairs
from isoscope.measures.view.neighbours import SHARPNESS


def on_a_sphere(_n: int, d: int) -> float:
    """Return the value of directions spread evenly over the sphere in d dimensions.

    E exp(k cos) = 0F1(d/2; k^2/4) with k = 2t, a series that converges at once.
    """
    term, total = 1.0, 1.0
    for m in range(1, 200):
        term *= SHARPNESS**2 / (m * (d / 2 + m - 1))
        total += term
    return float(np.log(total) - 2 * SHARPNESS)


@measure(
    "uniformity",
    reads=Pairs,
    isotropic=on_a_sphere,
    collapsed=0.0,
    unmoved_by={"rotation", "scale"},
    cite="wang2020",
    formula="log of the mean over pairs of exp(-2 |u - v|^2), u, v unit rows",
    misleads="From a sample of 2,048 rows. Rows are normalised here; many published values "
    "forgot to.",
    bounds=(-8.0, 0.0),
)
def uniformity(seen: Pairs) -> float:
    """Log of the mean Gaussian kernel between unit rows: lower is more uniform."""
    n = seen.count
    if n < 2:
        raise TooFewRowsError(
            f"uniformity needs at least 2 usable rows, got {n}",
            hint="rows of length zero have no direction and do not count",
            slug="too-few-rows",
        )
    return float(np.log(seen.kernel.sum() / (n * (n - 1))))
