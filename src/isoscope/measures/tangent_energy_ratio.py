"""Tangent energy ratio: do gradients prefer the proxy to a subspace of the same rank?"""

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.view.gradients import AgainstRandom, Controlled


@measure(
    "tangent-energy-ratio",
    reads=AgainstRandom,
    isotropic=1.0,
    collapsed=None,
    unmoved_by={"rotation", "scale"},
    cite="bernas2026",
    formula="tangent-energy over that of a control: (1 - E) k / (d - k) in the complement, "
    "k / d of a random subspace, or that of shuffled gradients",
    misleads="Against the complement, as published, it grows without bound as the proxy nears "
    "all of the energy; what of it is mechanical shows against the shuffled control only.",
    bounds=(0.0, None),
    logarithmic=True,
    offered="gradients",
)
def tangent_energy_ratio(seen: Controlled) -> float:
    """Energy of gradients in the proxy over that of a control of the same rank."""
    expected = seen.expected
    if expected <= 0:
        raise UndefinedError(
            "tangent-energy-ratio needs a control with energy in it, got none",
            hint="all gradients lie in the proxy: lower the rank",
            slug="no-gradient",
        )
    return seen.share / expected
