"""Centred mean cosine: is there still a cone once the mean is taken away?"""

from isoscope.measures.base import measure
from isoscope.measures.mean_cosine import mean_cosine
from isoscope.measures.view import CentredUnits


@measure(
    "mean-cosine-centred",
    reads=CentredUnits,
    isotropic=lambda n, _d: -1 / (n - 1),
    collapsed=None,
    unmoved_by={"rotation", "scale", "shift"},
    cite="cai2021",
    formula="mean cosine of the rows minus their mean",
    misleads="Close to zero for nearly every cloud: only a skewed one keeps a direction after "
    "centring. Says nothing of how even the variance is. The mean is taken from the very rows, "
    "which pushes the value to -1/(n-1); its interval holds the mean fixed.",
    second_pass=True,
    bounds=(-1.0, 1.0),
)
def mean_cosine_centred(seen: CentredUnits) -> float:
    """Mean cosine between two different rows, both taken from the mean."""
    return mean_cosine(seen)
