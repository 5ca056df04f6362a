"""Mean cosine across documents: do rows of different documents point the same way?"""

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import measure
from isoscope.measures.view import Units


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
