"""Largest probability: how much of its attention does a query give to one key?"""

from isoscope.measures.base import measure
from isoscope.measures.view.heads import ScoreSums


@measure(
    "largest-probability",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="mean over queries of the largest p",
    misleads="The first tokens of a causal model have few keys, and large values for it.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def largest_probability(seen: ScoreSums) -> float:
    """Largest probability that a query gives to one key, averaged over queries."""
    return seen.mean("largest")
