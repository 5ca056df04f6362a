"""Sentence similarity: do the words of a text point where the text as a whole points?"""

from isoscope.measures.base import companions_by_group, measure
from isoscope.measures.mean_cosine_cross import mean_cosine_cross
from isoscope.measures.view import SentenceSums


def _adjusted(seen: SentenceSums) -> float:
    return sentence_similarity(seen) - mean_cosine_cross(seen.units)


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
