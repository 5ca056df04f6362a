"""Inter-similarity: do occurrences of different token types point the same way?"""

import numpy as np

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import companions_by_group, measure
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.view import TypeSums
from isoscope.types import Array


def by_token(seen: TypeSums) -> float:
    """Return the mean over pairs of occurrences of different types."""
    n, total = float(seen.rows.sum()), seen.units.sum(axis=0)
    pairs = n * n - float(seen.row_squares.sum())
    if seen.documents < 2:
        raise _one_type(seen.documents)
    return float((total @ total - seen.unit_squares.sum()) / pairs)


@at_once(by_token)
def _by_token_without_each(seen: TypeSums) -> Array:
    n, total = sum_of_others(seen.rows), sum_of_others(seen.units)
    pairs = n**2 - sum_of_others(seen.row_squares)
    found = (np.vecdot(total, total) - sum_of_others(seen.unit_squares)) / pairs
    return np.where(seen.sizes.sum() - seen.sizes < 2, np.nan, found)


def _one_type(types: int) -> TooFewRowsError:
    return TooFewRowsError(
        f"inter-similarity needs at least 2 token types, got {types}",
        hint="give a longer corpus",
        slug="too-few-rows",
    )


@measure(
    "inter-similarity",
    reads=TypeSums,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="cai2021",
    formula="(|sum m|^2 - sum |m|^2) / (T (T - 1)), m = mean unit vector of a type, T types; "
    "-token: over all occurrences",
    misleads="Every type counts the same, so that rare ones decide; in running text two tokens "
    "are rarely both rare, see inter-similarity-token and mean-cosine. At most 1,024 types; "
    "the interval is over types, not documents.",
    companions=companions_by_group(token=by_token),
    beside=("token",),
    bounds=(-1.0, 1.0),
    offered="text",
)
def inter_similarity(seen: TypeSums) -> float:
    """Mean cosine between occurrences of two different token types, averaged over types.

    Over all pairs of types and all choices of one occurrence of each: the mean cosine between
    an occurrence of one type and one of another is the product of their mean unit vectors m,
    so that no occurrence has to be drawn.
    """
    types, total = seen.documents, seen.means.sum(axis=0)
    if types < 2:
        raise _one_type(types)
    return float((total @ total - seen.mean_squares.sum()) / (types * (types - 1)))


@at_once(inter_similarity)
def inter_without_each(seen: TypeSums) -> Array:
    """Return the same without each group."""
    types, total = seen.sizes.sum() - seen.sizes, sum_of_others(seen.means)
    found = np.vecdot(total, total) - sum_of_others(seen.mean_squares)
    return np.where(types < 2, np.nan, found / (types * (types - 1)))
