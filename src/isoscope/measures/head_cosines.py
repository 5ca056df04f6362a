"""Cosines within a head: do two of its queries, or two of its keys, point the same way?"""

import numpy as np

from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.errors import TooFewRowsError
from isoscope.measures.base import measure
from isoscope.measures.view.heads import KeyUnits, QueryUnits, RowUnits


def _mean_cosine(seen: RowUnits) -> float:
    if seen.count < 2:
        raise TooFewRowsError(
            f"a mean cosine needs at least 2 vectors with a direction, got {seen.count}",
            hint="give more documents",
            slug="too-few-rows",
        )
    total = seen.units.sum(axis=0)
    return float(cosine_over_pairs(np.float64(total @ total), seen.count))


@measure(
    "query-cosine",
    reads=QueryUnits,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="godey2024",
    formula="(|sum u|^2 - n) / (n (n - 1)), u = queries over their norms",
    misleads="A shared mean query alone makes it high. Pairs within a document are included.",
    bounds=(-1.0, 1.0),
    offered="heads",
)
def query_cosine(seen: QueryUnits) -> float:
    """Mean cosine between two queries of a head."""
    return _mean_cosine(seen)


@measure(
    "key-cosine",
    reads=KeyUnits,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="godey2024",
    formula="(|sum u|^2 - n) / (n (n - 1)), u = keys over their norms",
    misleads="A shared mean key alone makes it high. Pairs within a document are included.",
    bounds=(-1.0, 1.0),
    offered="heads",
)
def key_cosine(seen: KeyUnits) -> float:
    """Mean cosine between two keys of a head."""
    return _mean_cosine(seen)
