"""Debiased mean share: what would the mean share read with endless documents?"""

import numpy as np

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.mean_share import squared_lengths, sums_without_each
from isoscope.measures.view import Masses
from isoscope.types import Array


@measure(
    "mean-share-debiased",
    reads=Masses,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="mu2018",
    formula="(|sum x|^2 - sum_g |s_g|^2) / (n^2 - sum_g n_g^2) / mean of |x|^2, "
    "s_g sums over document g",
    misleads="Below zero by chance where the mean is zero. Long rows weigh more, as in "
    "mean-share.",
)
def mean_share_debiased(seen: Masses) -> float:
    """Share of the squared length in the mean, from rows of different documents only.

    A mean of few documents is longer than that of the population, by the variance of a mean:
    the share reads too high by about one over the number of documents. Products of rows of
    different documents are the squared length of the population's mean on average.
    """
    n, pairs = seen.sizes.sum(), seen.pairs.sum()
    if np.isnan(seen.own).any():
        raise TooFewRowsError(
            "mean-share-debiased needs sums over documents, which an old run does not have",
            hint="measure the vectors again with this version",
            slug="summary-not-kept",
        )
    if n * n <= pairs:
        raise TooFewRowsError(
            "mean-share-debiased needs at least 2 documents, got 1",
            hint="give more documents, or leave --document out",
            slug="too-few-documents",
        )
    lengths = squared_lengths(seen)
    if lengths <= 0:
        raise UndefinedError(
            "mean-share-debiased needs rows that are not zero, got only zeros",
            hint="check how the vectors were made",
            slug="only-zeros",
        )
    total = seen.sizes @ seen.mean  # (d,)
    return float((total @ total - seen.own.sum()) / (n * n - pairs) * n / lengths)


@at_once(mean_share_debiased)
def _without_each(seen: Masses) -> Array:
    total, lengths, n = sums_without_each(seen)
    others = n * n - sum_of_others(seen.pairs)
    found = (total - sum_of_others(seen.own)) / others * n / lengths
    return np.where((others > 0) & (lengths > 0), found, np.nan)
