"""Score spread: how far apart are the scores of a query?"""

from isoscope.measures.base import measure
from isoscope.measures.view.heads import ScoreSums


@measure(
    "score-spread",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="mean over queries of the standard deviation of the scores of visible keys",
    misleads="One key far above all others spreads scores little and takes all attention.",
    bounds=(0.0, None),
    offered="heads",
)
def score_spread(seen: ScoreSums) -> float:
    """Standard deviation of the scores of a query, averaged over queries."""
    return seen.mean("spread")
