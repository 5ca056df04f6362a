"""Sink mass: how much attention goes to norm sinks?"""

from isoscope.measures.base import measure
from isoscope.measures.view.heads import ScoreSums


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
    return seen.mean("sink")
