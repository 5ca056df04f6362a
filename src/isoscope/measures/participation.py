"""Participation ratio: how many dimensions carry the variance?"""

from isoscope.measures.base import measure
from isoscope.measures.view import Spectrum, isotropic_spectrum
from isoscope.types import Array


def ratio(values: Array) -> float:
    """Return the participation ratio of a set of eigenvalues."""
    share = values / values.sum()  # so that squares of tiny values do not vanish
    return float(1 / (share @ share))


@measure(
    "participation",
    reads=Spectrum,
    isotropic=lambda n, d: ratio(isotropic_spectrum(n, d)),
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="gao2017",
    formula="PR = (sum of eigenvalues)^2 / (sum of squared eigenvalues) of the covariance",
    misleads="Falls short of the truth while rows (or documents) are not many times the "
    "dimensions; sees nothing of the mean.",
    by_participation=True,
    bounds=(1.0, lambda _n, d: float(d)),
)
def participation(seen: Spectrum) -> float:
    """Number of dimensions that carry the variance, by the participation ratio.

    One dimension gives 1, d equal ones give d, whatever the scale:

        PR = (sum lambda)^2 / sum lambda^2 = tr(C)^2 / |C|_F^2
    """
    return ratio(seen.values)
