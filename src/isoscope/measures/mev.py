"""Maximum explainable variance: could one static vector stand for a word?"""

import numpy as np

from isoscope.measures.base import companions_by_group, measure
from isoscope.measures.view import Occurrences
from isoscope.measures.view.token_types import LEAST, not_repeated


def _baseline(seen: Occurrences) -> float:
    return float(seen.random.mean())


def _adjusted(seen: Occurrences) -> float:
    return float(np.mean(seen.shares - seen.random))


@measure(
    "mev",
    reads=Occurrences,
    isotropic=None,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="ethayarajh2019",
    formula="mean over types of s1^2 / sum s^2, s = singular values of a type's occurrences",
    misleads="Never below 1/n for n occurrences, so that few occurrences read high: read "
    "mev-adjusted, less the same of as many occurrences drawn from any type. Of at most 256 "
    "types with 5 to 16 occurrences each; rows are not centred; the interval is over types.",
    companions=companions_by_group(baseline=_baseline, adjusted=_adjusted),
    beside=("baseline", "adjusted"),
    bounds=(0.0, 1.0),
    offered="text",
)
def mev(seen: Occurrences) -> float:
    """Share of a type's occurrences that one vector explains, averaged over types."""
    if not len(seen.shares):
        raise not_repeated("mev", LEAST, seen.known)
    return float(seen.shares.mean())
