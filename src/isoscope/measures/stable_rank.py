"""Stable rank: how many times does the largest variance fit into the whole?"""

from isoscope.measures.base import measure
from isoscope.measures.interval import at_once
from isoscope.measures.view import Spectrum, isotropic_spectrum
from isoscope.types import Array


@measure(
    "stable-rank",
    reads=Spectrum,
    isotropic=lambda n, d: float(isotropic_spectrum(n, d).sum() / isotropic_spectrum(n, d)[0]),
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="rudelson2007",
    formula="sum of eigenvalues / largest eigenvalue, of the covariance",
    misleads="Looks at the largest direction only.",
    logarithmic=True,
    bounds=(1.0, lambda _n, d: float(d)),
)
def stable_rank(seen: Spectrum) -> float:
    """Total variance over the variance of the strongest direction."""
    return float(seen.values.sum() / seen.values.max())


@at_once(stable_rank)
def _without_each(seen: Spectrum) -> Array:
    return seen.without_each(lambda each: each.sum(axis=1) / each.max(axis=1))
