"""Mean cosine: do two vectors drawn at random point the same way?"""

import numpy as np

from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.measures.base import measure
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.view import Units
from isoscope.types import Array


def mean_cosines_without_each(seen: Units) -> Array:
    """Return the mean cosine without each group, (groups,): what intervals are made of.

    The same numbers, in the same order of summation, as `mean_cosine` of each remainder.
    """
    squared = np.array([total @ total for total in sum_of_others(seen.units)])
    return cosine_over_pairs(squared, seen.sizes.sum() - seen.sizes)


@measure(
    "mean-cosine",
    reads=Units,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="ethayarajh2019",
    formula="(|sum u|^2 - n) / (n (n - 1)), u = rows over their norms",
    misleads="A shared mean vector alone makes it high; read it beside mean-share and "
    "mean-cosine-centred. Pairs within a document are included, see mean-cosine-cross.",
    bounds=(-1.0, 1.0),
)
def mean_cosine(seen: Units) -> float:
    """Mean cosine between two different rows.

    The sum of all dot products of unit vectors u is the squared length of their sum, so
    the average over the n(n-1) pairs needs no pairs at all:

        mean cosine = (|sum u|^2 - n) / (n (n - 1))

    Exact, not sampled.
    """
    total = seen.total
    return float(cosine_over_pairs(np.float64(total @ total), seen.count))


at_once(mean_cosine)(mean_cosines_without_each)
