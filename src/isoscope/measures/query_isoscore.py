"""Query IsoScore: how evenly is the variance of queries spread over the dimensions?"""

from isoscope.measures.base import measure
from isoscope.measures.interval import interval
from isoscope.measures.isoscore import from_ratio
from isoscope.measures.participation import ratio
from isoscope.measures.view import isotropic_spectrum
from isoscope.measures.view.heads import QueryScatters, RowScatters


def isotropic_level(n: int, d: int) -> float:
    """Return the IsoScore of an isotropic cloud of n rows."""
    return from_ratio(ratio(isotropic_spectrum(n, d)), d)


def interval_of_isoscore(
    seen: RowScatters, _value: float, _published: bool
) -> tuple[float, float] | None:
    """Return the interval, symmetric in the logarithm of the participation ratio."""
    found = interval(seen, lambda s: s.participation, seen.participation, logarithmic=True)
    if found is None:
        return None
    low, high = (from_ratio(end, seen.width) for end in found)
    return low, high


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
    interval=interval_of_isoscore,
    bounds=(0.0, 1.0),
    offered="heads",
)
def query_isoscore(seen: QueryScatters) -> float:
    """Evenness of the variance of queries over the dimensions of a head."""
    return from_ratio(seen.participation, seen.width)
