"""Query norm: how long is the mean query of a head?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.jackknife import SQUARE
from isoscope.measures.view.heads import QueryMeans


@measure(
    "query-norm",
    reads=QueryMeans,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="|mean of q|",
    misleads="A mean over few documents is never zero: read it beside the interval. Rotary "
    "positions average the mean away, see the group before-rotation.",
    bounds=(0.0, None),
    corrected=SQUARE,
    offered="heads",
)
def query_norm(seen: QueryMeans) -> float:
    """Length of the mean query of a head."""
    return float(np.linalg.norm(seen.whole))
