"""Mean query and mean key of a head: how long are they, and do they point the same way?"""

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.view.heads import BothMeans, KeyMeans, QueryMeans

_NO_MEAN = (
    "A mean over few documents is never zero: read it beside the interval. Rotary positions "
    "turn vectors at every place and average the mean away, see the group before-rotation."
)


@measure(
    "query-norm",
    reads=QueryMeans,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="|mean of q|",
    misleads=_NO_MEAN,
    bounds=(0.0, None),
    offered="heads",
)
def query_norm(seen: QueryMeans) -> float:
    """Length of the mean query of a head."""
    return float(np.linalg.norm(seen.whole))


@measure(
    "key-norm",
    reads=KeyMeans,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="|mean of k|",
    misleads=_NO_MEAN,
    bounds=(0.0, None),
    offered="heads",
)
def key_norm(seen: KeyMeans) -> float:
    """Length of the mean key of a head."""
    return float(np.linalg.norm(seen.whole))


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


@measure(
    "query-key-dot",
    reads=BothMeans,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="scale (mean of q) . (mean of k), the scale that the softmax receives",
    misleads="The same number is added to every score of a query: alone it sharpens nothing.",
    offered="heads",
)
def query_key_dot(seen: BothMeans) -> float:
    """Scaled dot product of the mean query and the mean key of a head."""
    query, key = seen.means
    return float(seen.scale * (query @ key))
