"""Effective rank: how many dimensions are used, by the entropy of the spectrum?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.interval import at_once
from isoscope.measures.view import Spectrum, isotropic_spectrum
from isoscope.types import Array


def entropy_rank(values: Array) -> float:
    """Return exp of the entropy of values made to sum to one."""
    return float(entropy_ranks(values))


def entropy_ranks(values: Array) -> Array:
    """Return the same of each spectrum, (..., d) to (...)."""
    share = values / values.sum(axis=-1, keepdims=True)
    # a value of zero adds nothing, as one of 1 does
    return np.exp(-(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=-1))


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


@at_once(effective_rank)
def _without_each(seen: Spectrum) -> Array:
    return seen.without_each(entropy_ranks)
