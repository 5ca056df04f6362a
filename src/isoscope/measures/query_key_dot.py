"""Query-key dot: how much does the product of both means add to every score?"""

from isoscope.measures.base import measure
from isoscope.measures.jackknife import PLAIN
from isoscope.measures.view.heads import BothMeans


@measure(
    "query-key-dot",
    reads=BothMeans,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="scale (mean of q) . (mean of k), the scale that the softmax receives",
    misleads="The same number is added to every score of a query: alone it sharpens nothing.",
    corrected=PLAIN,
    offered="heads",
)
def query_key_dot(seen: BothMeans) -> float:
    """Scaled dot product of the mean query and the mean key of a head."""
    query, key = seen.means
    return float(seen.scale * (query @ key))
