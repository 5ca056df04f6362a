"""RankMe: how many dimensions do the rows use, by the entropy of their singular values?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.interval import at_once
from isoscope.measures.view import RawSpectrum, isotropic_spectrum
from isoscope.types import Array

EPSILON = 1e-7  # of the paper; keeps the logarithm finite


def of_squares(squares: Array) -> float:
    """Return RankMe of squared singular values, up to a common factor."""
    return float(of_spectra(squares))


def of_spectra(squares: Array) -> Array:
    """Return the same of each spectrum, (..., d) to (...)."""
    singular = np.sqrt(squares)
    share = singular / singular.sum(axis=-1, keepdims=True) + EPSILON
    return np.exp(-(share * np.log(share)).sum(axis=-1))


@measure(
    "rankme",
    reads=RawSpectrum,
    isotropic=lambda n, d: of_squares(isotropic_spectrum(n + 1, d)[: min(n, d)]),
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="garrido2023",
    formula="exp(-sum p log p), p = singular values of the raw rows over their sum + 1e-7",
    misleads="Not centred: a large mean is one large singular value and lowers it. The paper "
    "uses 25,600 rows; values at other counts are not comparable where n is not many times d.",
    bounds=(1.0, lambda _n, d: float(d)),
)
def rankme(seen: RawSpectrum) -> float:
    """Number of dimensions used: exp of the entropy of the rows' singular values."""
    return of_squares(seen.values[: seen.rank])


@at_once(rankme)
def _without_each(seen: RawSpectrum) -> Array:
    return seen.without_each(lambda spectra: of_spectra(spectra[:, : seen.rank]))
