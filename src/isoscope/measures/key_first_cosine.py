"""Key first cosine: on which side of the first singular vector of queries are the keys?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.jackknife import PLAIN
from isoscope.measures.view.heads import BothScatters, no_mean, warn_of_noise


def _warn(seen: BothScatters, _value: float, _error: float | None) -> list[str]:
    queries = warn_of_noise(seen.sizes, seen.mean, "query")
    return queries + warn_of_noise(seen.key_rows, seen.key_means, "key")


@measure(
    "key-first-cosine",
    reads=BothScatters,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation", "scale"},
    cite="godey2024",
    formula="(mean of k) . v / |mean of k|, v = first right singular vector of queries, on the "
    "side of their mean",
    misleads="Its sign means little where query-first-share is small: v has no side then.",
    bounds=(-1.0, 1.0),
    corrected=PLAIN,
    warn=_warn,
    offered="heads",
)
def key_first_cosine(seen: BothScatters) -> float:
    """Cosine between the mean key and the first right singular vector of the queries."""
    key = seen.mean_key
    length = float(np.linalg.norm(key))
    if length <= 0:
        raise no_mean("key-first-cosine")
    return float(np.clip(seen.queries.first_direction @ key / length, -1.0, 1.0))
