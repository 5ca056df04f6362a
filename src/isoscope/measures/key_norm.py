"""Key norm: how long is the mean key of a head?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.jackknife import SQUARE
from isoscope.measures.view.heads import KeyMeans


@measure(
    "key-norm",
    reads=KeyMeans,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="|mean of k|",
    misleads="A mean over few documents is never zero: read it beside the interval. Rotary "
    "positions average the mean away, see the group before-rotation.",
    bounds=(0.0, None),
    corrected=SQUARE,
    offered="heads",
)
def key_norm(seen: KeyMeans) -> float:
    """Length of the mean key of a head."""
    return float(np.linalg.norm(seen.whole))
