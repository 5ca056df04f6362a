"""Tangent anisotropy: does the proxy carry what makes gradients anisotropic?"""

from isoscope.measures.base import measure
from isoscope.measures.isoscore_star import ZETA, check_zeta
from isoscope.measures.view.gradients import TangentScatters

CONTROLS = 999


@measure(
    "tangent-anisotropy",
    reads=TangentScatters,
    isotropic=None,
    collapsed=None,
    unmoved_by={"rotation", "scale"},
    cite="bernas2026",
    formula="IsoScore*(P G) in d - k dimensions - IsoScore*(G) in d, P = I - QQ'; of a group, "
    "less the same of its control",
    misleads="Shrinking lifts both values; compare only at the same zeta and rank.",
    beside=("p",),
    offered="gradients",
)
def tangent_anisotropy(
    seen: TangentScatters, *, zeta: float = ZETA, controls: int = CONTROLS
) -> float:
    """Rise of IsoScore* of gradients once the proxy is removed."""
    return seen.rise(check_zeta(zeta)) - seen.expected(zeta, controls)
