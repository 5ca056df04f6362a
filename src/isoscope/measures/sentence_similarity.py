"""Sentence similarity: do the words of a text point where the text as a whole points?"""

from isoscope.measures.base import companions_by_group, measure
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.mean_cosine_cross import cross_without_each, mean_cosine_cross
from isoscope.measures.view import SentenceSums
from isoscope.types import Array


def _adjusted(seen: SentenceSums) -> float:
    return sentence_similarity(seen) - mean_cosine_cross(seen.units)


@at_once(_adjusted)
def _adjusted_without_each(seen: SentenceSums) -> Array:
    every = seen.units  # some of its groups may have one-row documents only
    alike = every.groups == seen.groups
    return _without_each(seen) - (
        cross_without_each(every) if alike else mean_cosine_cross(every)
    )


@measure(
    "sentence-similarity",
    reads=SentenceSums,
    isotropic=None,
    collapsed=1.0,
    unmoved_by={"rotation", "scale"},
    cite="ethayarajh2019",
    formula="mean over documents of (1/n) sum_i cos(x_i, mean of x), n rows of a document",
    misleads="Rows are part of the mean they are compared with: n unrelated rows read about "
    "1/sqrt(n), so compare only documents of like length. In a narrow cone everything is "
    "alike: read sentence-similarity-adjusted, less mean-cosine-cross.",
    companions=companions_by_group(adjusted=_adjusted),
    beside=("adjusted",),
    bounds=(-1.0, 1.0),
    offered="text",
)
def sentence_similarity(seen: SentenceSums) -> float:
    """Mean cosine of the rows of a document to their mean vector, averaged over documents."""
    return float(seen.likeness.sum() / seen.sizes.sum())


@at_once(sentence_similarity)
def _without_each(seen: SentenceSums) -> Array:
    return sum_of_others(seen.likeness) / sum_of_others(seen.sizes)
