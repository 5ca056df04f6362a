"""Effective rank: how many dimensions are used, by the entropy of the spectrum?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.view import Spectrum, isotropic_spectrum
from isoscope.types import Array


def entropy_rank(values: Array) -> float:
    """Return exp of the entropy of values made to sum to one."""
    share = values[values > 0] / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


@measure(
    "effective-rank",
    reads=Spectrum,
    isotropic=lambda n, d: entropy_rank(isotropic_spectrum(n, d)),
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="roy2007",
    formula="exp(-sum p log p), p = eigenvalues of the covariance over their sum",
    misleads="Of covariance eigenvalues, not of singular values as RankMe; biased low unless "
    "rows (or documents) are many times d.",
    bounds=(1.0, lambda _n, d: float(d)),
)
def effective_rank(seen: Spectrum) -> float:
    """Number of dimensions used: exp of the entropy of the covariance's spectrum."""
    return entropy_rank(seen.values)
