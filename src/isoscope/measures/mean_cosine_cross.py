"""Mean cosine across documents: do rows of different documents point the same way?"""

import numpy as np

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import measure
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.view import Units
from isoscope.types import Array


@measure(
    "mean-cosine-cross",
    reads=Units,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="ethayarajh2019",
    formula="(|sum u|^2 - sum_g |s_g|^2) / (n^2 - sum_g n_g^2), s_g sums over document g",
    misleads="Without documents every row is its own and the value equals mean-cosine.",
    bounds=(-1.0, 1.0),
)
def mean_cosine_cross(seen: Units) -> float:
    """Mean cosine between rows of different documents.

    Rows of one document resemble each other; all pairs together say so and not only how
    narrow the cone is. Leaving such pairs out costs one more number to sum.
    """
    n, total = seen.count, seen.total
    pairs = float(n) ** 2 - float(seen.pairs.sum())
    if pairs <= 0:
        raise TooFewRowsError(
            "mean-cosine-cross needs at least 2 documents, got 1",
            hint="give more documents, or leave --document out",
            slug="too-few-documents",
        )
    return float((total @ total - seen.own.sum()) / pairs)


@at_once(mean_cosine_cross)
def cross_without_each(seen: Units) -> Array:
    """Return the same without each group."""
    n, total = seen.sizes.sum() - seen.sizes, sum_of_others(seen.units)
    pairs = n**2 - sum_of_others(seen.pairs)
    found = (np.vecdot(total, total) - sum_of_others(seen.own)) / pairs
    return np.where(pairs > 0, found, np.nan)
