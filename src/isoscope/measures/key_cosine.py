"""Key cosine: do two keys of a head point the same way?"""

from isoscope.measures.base import measure
from isoscope.measures.jackknife import PLAIN
from isoscope.measures.view.heads import KeyUnits


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
    corrected=PLAIN,
    offered="heads",
)
def key_cosine(seen: KeyUnits) -> float:
    """Mean cosine between two keys of a head."""
    return seen.mean_cosine
