"""Self-similarity: do occurrences of one word point the same way, whatever the context?"""

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import Companion, measure
from isoscope.measures.interval import at_once, interval, sum_of_others
from isoscope.measures.mean_cosine_cross import mean_cosine_cross
from isoscope.measures.view import TypeSums
from isoscope.measures.view.token_types import not_repeated
from isoscope.types import Array


def by_type(seen: TypeSums, name: str = "self-similarity") -> float:
    """Return the mean over repeated types of the mean cosine between their occurrences."""
    if not seen.repeated.sum():
        raise not_repeated(name, 2, seen.documents)
    return float(seen.within.sum() / seen.repeated.sum())


@at_once(by_type)
def by_type_without_each(seen: TypeSums) -> Array:
    """Return the same without each group."""
    return sum_of_others(seen.within) / sum_of_others(seen.repeated)


def _companions(seen: TypeSums, _published: bool) -> list[Companion]:
    try:
        floor = mean_cosine_cross(seen.every)
    except TooFewRowsError:  # a single text has nothing to be compared with
        return []
    value = by_type(seen)
    ends = interval(seen, by_type, value)
    low, high = (None, None) if ends is None else (ends[0] - floor, ends[1] - floor)
    return [Companion("adjusted", value - floor, low, high)]


@measure(
    "self-similarity",
    reads=TypeSums,
    isotropic=0.0,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="ethayarajh2019",
    formula="mean over types with n >= 2 of (|s|^2 - n) / (n (n - 1)), s = sum of unit vectors",
    misleads="In a narrow cone everything is alike: read self-similarity-adjusted, less "
    "mean-cosine-cross. Types are tokens, not words, and at most 1,024 of them; the "
    "interval is over types, not documents.",
    companions=_companions,
    beside=("adjusted",),
    bounds=(-1.0, 1.0),
    offered="text",
)
def self_similarity(seen: TypeSums) -> float:
    """Mean cosine between two occurrences of a token type, averaged over types.

    The sum s of the unit vectors of a type's n occurrences holds all its pairs:

        mean cosine = (|s|^2 - n) / (n (n - 1))

    Exact, not sampled; types that occur once have no pairs and do not count.
    """
    return by_type(seen)


at_once(self_similarity)(by_type_without_each)
