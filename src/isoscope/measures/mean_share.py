"""Mean share: how much of a row's squared length is the same for all rows?"""

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.view import Masses


def squared_lengths(seen: Masses) -> float:
    """Return the sum of |x|^2 over all rows."""
    return float(seen.trace.sum() + seen.sizes @ np.vecdot(seen.mean, seen.mean))


@measure(
    "mean-share",
    reads=Masses,
    isotropic=lambda n, _d: 1 / n,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="mu2018",
    formula="|mean|^2 / mean of |x|^2",
    misleads="Long rows weigh more: a few of great norm decide it, where the mean cosine "
    "counts all rows alike.",
    bounds=(0.0, 1.0),
)
def mean_share(seen: Masses) -> float:
    """Share of the squared length of the rows that is their common mean vector."""
    mean = seen.sizes @ seen.mean / seen.sizes.sum()
    lengths = squared_lengths(seen)
    if lengths <= 0:
        raise UndefinedError(
            "mean-share needs rows that are not zero, got only zeros",
            hint="check how the vectors were made",
            slug="only-zeros",
        )
    return float(mean @ mean * seen.sizes.sum() / lengths)
