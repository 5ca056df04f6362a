"""Maximum explainable variance: could one static vector stand for a word?"""

import numpy as np

from isoscope.measures.base import Companion, measure
from isoscope.measures.interval import interval
from isoscope.measures.view import Occurrences
from isoscope.measures.view.token_types import LEAST, not_repeated


def _of_types(seen: Occurrences) -> float:
    if not len(seen.shares):
        raise not_repeated("mev", LEAST, seen.known)
    return float(seen.shares.mean())


def _of_any(seen: Occurrences) -> float:
    return float(seen.random.mean())


def _adjusted(seen: Occurrences) -> float:
    return float(np.mean(seen.shares - seen.random))


def _companions(seen: Occurrences, _published: bool) -> list[Companion]:
    beside: list[Companion] = []
    for suffix, compute in (("baseline", _of_any), ("adjusted", _adjusted)):
        value = compute(seen)
        ends = interval(
            seen,
            compute,
            value,
        ) or (None, None)
        beside.append(Companion(suffix, value, *ends))
    return beside


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
    companions=_companions,
    beside=("baseline", "adjusted"),
    bounds=(0.0, 1.0),
    offered="text",
)
def mev(seen: Occurrences) -> float:
    """Share of a type's occurrences that one vector explains, averaged over types."""
    return _of_types(seen)
