"""Query IsoScore: how evenly is the variance of queries spread over the dimensions?"""

from isoscope.measures.base import measure
from isoscope.measures.isoscore import from_ratio
from isoscope.measures.jackknife import RATIO
from isoscope.measures.participation import ratio
from isoscope.measures.view import isotropic_spectrum
from isoscope.measures.view.heads import QueryScatters


def isotropic_level(n: int, d: int) -> float:
    """Return the IsoScore of an isotropic cloud of n rows."""
    return from_ratio(ratio(isotropic_spectrum(n, d)), d)


@measure(
    "query-isoscore",
    reads=QueryScatters,
    isotropic=isotropic_level,
    collapsed=0.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="rudman2022",
    formula="(PR - 1) / (d - 1), PR = tr(C)^2 / |C|_F^2, C = covariance of queries",
    misleads="Blind to the mean: read it beside the cosine. Its interval is over eight shares "
    "of the documents, and is there where each of them has one.",
    bounds=(0.0, 1.0),
    corrected=RATIO,
    offered="heads",
)
def query_isoscore(seen: QueryScatters) -> float:
    """Evenness of the variance of queries over the dimensions of a head."""
    return from_ratio(seen.participation, seen.width)
