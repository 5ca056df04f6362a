"""Local intrinsic dimension: how many dimensions does the neighbourhood of a row have?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.view import FarNeighbours
from isoscope.measures.view.neighbours import EQUAL, equally_far

NEIGHBOURS = 100


@measure(
    "lid",
    reads=FarNeighbours,
    isotropic=None,
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="cai2021",
    formula="mean over rows of -1 / mean_j log(r_j / r_k), j = 1 to k, k = 100",
    misleads="Far too low in high dimension and rising with the number of rows; compare only "
    "equal counts. From a sample of 2,048 rows, whose hundredth neighbour is far away: a "
    "curved sheet reads as thicker than it is.",
    bounds=(0.0, None),
    offered="asked",
)
def lid(seen: FarNeighbours) -> float:
    """Local intrinsic dimension from the distances to a hundred neighbours, averaged."""
    distances = seen.first(NEIGHBOURS)  # (n, k)
    inverse = -np.log(distances / distances[:, -1:]).mean(axis=1)
    if (inverse <= EQUAL).any():
        raise equally_far()
    return float((1 / inverse).mean())
