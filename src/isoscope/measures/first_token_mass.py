"""First-token mass: how much attention goes to the first token of a document?"""

from isoscope.measures.base import measure
from isoscope.measures.view.heads import ScoreSums


@measure(
    "first-token-mass",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="xiao2024",
    formula="mean over queries of p of the first token of the document",
    misleads="In short documents of a causal model the first token has much of it anyway.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def first_token_mass(seen: ScoreSums) -> float:
    """Probability that queries give to the first token of their document."""
    return seen.mean("first")
