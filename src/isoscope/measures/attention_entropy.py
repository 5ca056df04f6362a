"""Attention entropy: how sharp is the attention of a head?"""

from isoscope.measures.base import measure
from isoscope.measures.view.heads import ScoreSums


@measure(
    "attention-entropy",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="mean over queries of -sum p log p / log of the number of visible keys",
    misleads="Queries with one visible key have none and are excluded. With few keys it "
    "moves more for the same sharpness.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def attention_entropy(seen: ScoreSums) -> float:
    """Entropy of attention over that of looking at all visible keys alike."""
    return seen.mean("entropy", over="several")
