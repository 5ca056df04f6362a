"""Scores of a head: how far apart are they, and how sharp is the attention they make?"""

from isoscope.errors import TooFewRowsError
from isoscope.measures.base import measure
from isoscope.measures.view.heads import ScoreSums


def _mean(seen: ScoreSums, name: str, over: str = "weight") -> float:
    weight = seen.total(over)
    if weight <= 0:
        what = "sees a key" if over == "weight" else "sees at least two keys"
        raise TooFewRowsError(
            f"attention needs a query that {what}, got none",
            hint="give longer documents",
            slug="no-visible-keys",
        )
    return seen.total(name) / weight


@measure(
    "score-spread",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="mean over queries of the standard deviation of the scores of visible keys",
    misleads="One key far above all others spreads scores little and takes all attention.",
    bounds=(0.0, None),
    offered="heads",
)
def score_spread(seen: ScoreSums) -> float:
    """Standard deviation of the scores of a query, averaged over queries."""
    return _mean(seen, "spread")


@measure(
    "attention-entropy",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="mean over queries of -sum p log p / log of the number of visible keys",
    misleads="Queries with one visible key have none and are excluded. With few keys it "
    "moves more for the same sharpness.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def attention_entropy(seen: ScoreSums) -> float:
    """Entropy of attention over that of looking at all visible keys alike."""
    return _mean(seen, "entropy", over="several")


@measure(
    "largest-probability",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="godey2024",
    formula="mean over queries of the largest p",
    misleads="The first tokens of a causal model have few keys, and large values for it.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def largest_probability(seen: ScoreSums) -> float:
    """Largest probability that a query gives to one key, averaged over queries."""
    return _mean(seen, "largest")


@measure(
    "first-token-mass",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="xiao2024",
    formula="mean over queries of p of the first token of the document",
    misleads="In short documents of a causal model the first token has much of it anyway.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def first_token_mass(seen: ScoreSums) -> float:
    """Probability that queries give to the first token of their document."""
    return _mean(seen, "first")


@measure(
    "sink-mass",
    reads=ScoreSums,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation"},
    cite="xiao2024",
    formula="mean over queries of the sum of p over norm sinks of the block's input",
    misleads="Norm sinks are known by the norm of the stream, not by attention: a token that "
    "takes all attention without a great norm is none.",
    bounds=(0.0, 1.0),
    offered="heads",
)
def sink_mass(seen: ScoreSums) -> float:
    """Probability that queries give to norm sinks of the block's input."""
    return _mean(seen, "sink")
