"""Maximum-likelihood dimension: what is the intrinsic dimension, from twenty neighbours?"""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.interval import at_once
from isoscope.measures.view import Neighbours
from isoscope.measures.view.neighbours import EQUAL, equally_far
from isoscope.types import Array

NEIGHBOURS = 20


@measure(
    "mle-dimension",
    reads=Neighbours,
    isotropic=None,
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="levina2004",
    formula="1 / mean over rows of (1/(k-1)) sum_j log(r_k / r_j), k = 20",
    misleads="Far too low in high dimension and rising with the number of rows; compare only "
    "equal counts. From a sample of 2,048 rows, copies excluded; its interval is about "
    "one and a half times too wide.",
    bounds=(0.0, None),
)
def mle_dimension(seen: Neighbours) -> float:
    """Intrinsic dimension from the distances to twenty neighbours, by maximum likelihood.

    Levina and Bickel's estimate of each point, averaged by the inverse as MacKay and
    Ghahramani advise.
    """
    inverse = float(inverses(seen.first(NEIGHBOURS)).mean())
    if inverse <= EQUAL:
        raise equally_far()
    return 1 / inverse


def inverses(distances: Array) -> Array:
    """Return one over the estimate of each row, from distances to its neighbours, (n, k)."""
    return np.log(distances[:, -1:] / distances[:, :-1]).mean(axis=1)


@at_once(mle_dimension)
def _without_each(seen: Neighbours) -> Array:
    known, found = inverses(seen.first(NEIGHBOURS)), np.empty(seen.groups)
    for group in range(seen.groups):  # half of the rows have the neighbours that they had
        if seen.without(group).count <= NEIGHBOURS:
            return np.full(seen.groups, np.nan)
        here, fewer, near = seen.changed_by(group, NEIGHBOURS)
        left = known[here]
        left[fewer] = inverses(near)
        found[group] = left.mean()
    return np.where(found > EQUAL, 1 / found, np.nan)
