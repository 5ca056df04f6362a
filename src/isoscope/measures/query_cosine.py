"""Query cosine: do two queries of a head point the same way?"""

from isoscope.measures.base import measure
from isoscope.measures.jackknife import PLAIN
from isoscope.measures.view.heads import QueryUnits


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
    corrected=PLAIN,
    offered="heads",
)
def query_cosine(seen: QueryUnits) -> float:
    """Mean cosine between two queries of a head."""
    return seen.mean_cosine
