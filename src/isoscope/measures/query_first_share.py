"""Query first share: does the mean query lie along the first singular vector of queries?"""

from isoscope.measures.base import measure
from isoscope.measures.jackknife import PLAIN
from isoscope.measures.view.heads import QueryScatters, no_mean, warn_of_noise


def _warn(seen: QueryScatters, _value: float, _error: float | None) -> list[str]:
    return warn_of_noise(seen.sizes, seen.mean, "query")


@measure(
    "query-first-share",
    reads=QueryScatters,
    isotropic=None,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="godey2024",
    formula="((mean of q) . v)^2 / |mean of q|^2, v = first right singular vector of queries",
    misleads="A mean that is longer than the spread is the first singular vector by itself.",
    bounds=(0.0, 1.0),
    corrected=PLAIN,
    warn=_warn,
    offered="heads",
)
def query_first_share(seen: QueryScatters) -> float:
    """Share of the mean query along the first right singular vector of the queries."""
    mean = seen.whole
    length = float(mean @ mean)
    if length <= 0:
        raise no_mean("query-first-share")
    return min(float(seen.first_direction @ mean) ** 2 / length, 1.0)
