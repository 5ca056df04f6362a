"""Key IsoScore: how evenly is the variance of keys spread over the dimensions?"""

from isoscope.measures.base import measure
from isoscope.measures.isoscore import from_ratio
from isoscope.measures.jackknife import RATIO
from isoscope.measures.query_isoscore import isotropic_level
from isoscope.measures.view.heads import KeyScatters


@measure(
    "key-isoscore",
    reads=KeyScatters,
    isotropic=isotropic_level,
    collapsed=0.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="rudman2022",
    formula="(PR - 1) / (d - 1), PR = tr(C)^2 / |C|_F^2, C = covariance of keys",
    misleads="Blind to the mean: read it beside the cosine. Its interval is over eight shares "
    "of the documents, and is there where each of them has one.",
    bounds=(0.0, 1.0),
    corrected=RATIO,
    offered="heads",
)
def key_isoscore(seen: KeyScatters) -> float:
    """Evenness of the variance of keys over the dimensions of a head."""
    return from_ratio(seen.participation, seen.width)
