"""Tangent energy: how much of the gradients lies in the directions that are already large?"""

from isoscope.measures.base import measure
from isoscope.measures.view.gradients import TangentEnergies


@measure(
    "tangent-energy",
    reads=TangentEnergies,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation", "scale"},
    cite="bernas2026",
    formula="sum |Q'g|^2 / sum |g|^2, Q the proxy fitted to activations, about zero",
    misleads="A proxy of k of d directions holds k / d of gradients that know nothing of it; "
    "weight gradients lie in the span of the inputs whatever is learnt: read it beside "
    "tangent-energy-ratio.",
    bounds=(0.0, 1.0),
    beside=("p",),
    offered="gradients",
)
def tangent_energy(seen: TangentEnergies) -> float:
    """Share of the energy of gradients that lies in the proxy."""
    return seen.share
