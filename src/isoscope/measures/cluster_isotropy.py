"""Cluster isotropy: is there still a cone once every cluster is seen from its own mean?"""

import numpy as np

from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.errors import UndefinedError
from isoscope.measures.base import Companion, measure
from isoscope.measures.view import Clusters


@measure(
    "cluster-isotropy",
    reads=Clusters,
    isotropic=0.0,
    collapsed=None,
    unmoved_by={"rotation", "scale", "shift"},
    cite="cai2021",
    formula="mean over clusters of (|sum u|^2 - n) / (n (n - 1)), u = rows less the mean of "
    "their cluster, over their norms",
    misleads="Near zero for almost any cloud, since what it measures has been taken away with "
    "the means: the finding is in -clusters and -silhouette, and in the difference to "
    "mean-cosine. From a sample of 2,048 rows; the interval takes the clusters as given.",
    companions=lambda seen, _published: [
        Companion("clusters", float(seen.number), None, None),
        Companion("silhouette", seen.silhouette, None, None),
    ],
    beside=("clusters", "silhouette"),
    bounds=(-1.0, 1.0),
    offered="asked",
)
def cluster_isotropy(seen: Clusters) -> float:
    """Mean cosine between rows of a cluster, seen from its mean, averaged over clusters."""
    n, total = seen.nonzero.sum(axis=0), seen.units.sum(axis=0)
    usable = n >= 2
    if not usable.any():
        raise UndefinedError(
            "cluster-isotropy needs a cluster of 2 rows that differ, got none",
            hint="give more rows; copies of a row count once",
            slug="no-spread",
        )
    n, total = n[usable], total[usable]
    return float(np.mean(cosine_over_pairs(np.vecdot(total, total), n)))
