"""Query-key cosine: do the mean query and the mean key of a head point the same way?"""

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.jackknife import PLAIN
from isoscope.measures.view.heads import BothMeans, warn_of_noise


def _warn(seen: BothMeans, _value: float, _error: float | None) -> list[str]:
    queries = warn_of_noise(seen.sizes, seen.queries, "query")
    return queries + warn_of_noise(seen.key_rows, seen.key_means, "key")


@measure(
    "query-key-cosine",
    reads=BothMeans,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation", "scale"},
    cite="godey2024",
    formula="(mean of q) . (mean of k) / (|mean of q| |mean of k|)",
    misleads="Two short means may point anywhere: read it beside query-norm and key-norm.",
    bounds=(-1.0, 1.0),
    corrected=PLAIN,
    warn=_warn,
    offered="heads",
)
def query_key_cosine(seen: BothMeans) -> float:
    """Cosine between the mean query and the mean key of a head."""
    query, key = seen.means
    lengths = float(np.linalg.norm(query) * np.linalg.norm(key))
    if lengths <= 0:
        raise UndefinedError(
            "query-key-cosine needs means that are not zero, got zero",
            hint="check the weights of this head; all its queries or keys cancel out",
            slug="only-zeros",
        )
    return float(np.clip(query @ key / lengths, -1.0, 1.0))
