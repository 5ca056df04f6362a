"""TwoNN: what is the intrinsic dimension, from the two nearest neighbours?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.view import Neighbours
from isoscope.measures.view.neighbours import EQUAL, equally_far
from isoscope.types import Array

DISCARDED = 0.1  # the largest ratios, which follow the law least


def of_distances(distances: Array) -> float:
    """Return the dimension from the distances to the two nearest neighbours, (n, 2).

    The ratio of the two follows a Pareto law whose exponent is the dimension: a line
    through the origin is fitted to -log(1 - F) against log ratio.
    """
    ratios = np.sort(distances[:, 1] / distances[:, 0])
    n = len(ratios)
    kept = int(n * (1 - DISCARDED))
    x = np.log(ratios[:kept])
    if x @ x <= kept * EQUAL**2:
        raise equally_far()
    y = -np.log(1 - np.arange(1, kept + 1) / n)
    return float((x @ y) / (x @ x))


@measure(
    "twonn",
    reads=Neighbours,
    isotropic=None,
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="facco2017",
    formula="slope through the origin of -log(1 - F) on log(r2 / r1), largest tenth excluded",
    misleads="Far too low in high dimension and rising with the number of rows; compare only "
    "equal counts. From a sample of 2,048 rows, copies excluded; its interval is about "
    "one and a half times too wide.",
    bounds=(0.0, None),
)
def twonn(seen: Neighbours) -> float:
    """Intrinsic dimension from the ratio of distances to the two nearest neighbours."""
    return of_distances(seen.first(2))
