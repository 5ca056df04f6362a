"""Top share: how much of the variance lies along one direction?"""

from isoscope.measures.base import measure
from isoscope.measures.interval import at_once
from isoscope.measures.view import Spectrum, isotropic_spectrum
from isoscope.types import Array


@measure(
    "top-share",
    reads=Spectrum,
    isotropic=lambda n, d: float(isotropic_spectrum(n, d)[0] / isotropic_spectrum(n, d).sum()),
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="razzhigaev2024",
    formula="largest eigenvalue / sum of eigenvalues, of the covariance",
    misleads="Some tools call it anisotropy; it is not the mean cosine and not about the mean.",
    bounds=(0.0, 1.0),
)
def top_share(seen: Spectrum) -> float:
    """Share of the variance that lies along the strongest direction."""
    return float(seen.values.max() / seen.values.sum())


@at_once(top_share)
def _without_each(seen: Spectrum) -> Array:
    return seen.without_each(lambda each: each.max(axis=1) / each.sum(axis=1))
