"""Intra-similarity: do occurrences of one type point the same way, by type and by token?"""

from isoscope.measures.base import companions_by_group, measure
from isoscope.measures.inter_similarity import inter_similarity, inter_without_each
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.self_similarity import by_type, by_type_without_each
from isoscope.measures.view import TypeSums
from isoscope.types import Array


def by_token(seen: TypeSums) -> float:
    """Return the mean over occurrences, so that frequent types count for more."""
    intra_similarity(seen)  # raises where there is no such type
    return float(seen.within_rows.sum() / seen.repeated_rows.sum())


@at_once(by_token)
def _by_token_without_each(seen: TypeSums) -> Array:
    return sum_of_others(seen.within_rows) / sum_of_others(seen.repeated_rows)


def _adjusted(seen: TypeSums) -> float:
    return intra_similarity(seen) - inter_similarity(seen)


@at_once(_adjusted)
def _adjusted_without_each(seen: TypeSums) -> Array:
    return by_type_without_each(seen) - inter_without_each(seen)


@measure(
    "intra-similarity",
    reads=TypeSums,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="cai2021",
    formula="mean over types with n >= 2 of (|s|^2 - n) / (n (n - 1)); -token: weighted by n; "
    "-adjusted: less inter-similarity",
    misleads="The same number as self-similarity, under the name of Cai and Machina, whose "
    "papers compare it with inter-similarity; intra-similarity-token is mostly about a few "
    "frequent types, and of a large vocabulary about those that happen to be kept.",
    companions=companions_by_group(token=by_token, adjusted=_adjusted),
    beside=("token", "adjusted"),
    bounds=(-1.0, 1.0),
    offered="text",
)
def intra_similarity(seen: TypeSums) -> float:
    """Mean cosine between occurrences of the same token type, averaged over types."""
    return by_type(seen, "intra-similarity")


at_once(intra_similarity)(by_type_without_each)
