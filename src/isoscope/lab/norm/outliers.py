"""Outlying norm parameters (Kovaleva): gains and biases beyond 3 sigma, layer after layer."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoscope.capture.norm import is_norm
from isoscope.capture.stacks import Stack, find_stacks
from isoscope.errors import UndefinedError
from isoscope.lab.norm.affine import Affine, affine_of
from isoscope.lab.plain import Plain
from isoscope.site import Site, prefix_of
from isoscope.study.model import subject_of
from isoscope.types import Array

SIGMAS = 3.0


@dataclass(frozen=True)
class NormOutliers(Plain):
    """The outlying dimensions of one norm."""

    module: str
    gain: list[int]
    bias: list[int]


@dataclass(frozen=True)
class RoleOutliers(Plain):
    """Norms that have the same place in every block, and the dimensions that stand out.

    A dimension is common where its gain, or its bias, is out in more than half of them.
    """

    stack: str  # what stands before its sites, or nothing
    role: str  # name within the block, such as "output.LayerNorm"
    layers: int
    width: int
    common_gain: dict[int, int]  # dimension: in how many layers
    common_bias: dict[int, int]
    common_both: list[int]  # gain and bias: what Kovaleva disables
    norms: list[NormOutliers]


def outlying_parameters(
    model: Any, *, sigmas: float = SIGMAS, **given: Any
) -> list[RoleOutliers]:
    """Return the dimensions whose norm parameters are out of the ordinary, role by role.

    Norms are those within blocks that work on the width of the stream; the final norm of a
    pre-norm model stands alone and is in `final_norms`.
    """
    subject = subject_of(model, **given)
    body = subject.sites.body
    found: list[RoleOutliers] = []
    for stack in find_stacks(body):
        width = subject.sites.widths.get(str(Site("embed", stack=stack.name)))
        if width is not None:
            found += _of_stack(body, stack, width, sigmas)
    if not found:
        raise UndefinedError(
            f"expected norms in the blocks of {subject.loaded.name}, got none",
            hint="only Transformers have norms in their blocks",
            slug="no-norms",
        )
    return found


def outlying(values: Array | None, sigmas: float = SIGMAS) -> list[int]:
    """Return where values are farther than so many sigmas from their mean."""
    if values is None or not values.std():
        return []
    return [
        int(i) for i in np.flatnonzero(np.abs(values - values.mean()) > sigmas * values.std())
    ]


def _of_stack(body: Any, stack: Stack, width: int, sigmas: float) -> list[RoleOutliers]:
    roles: dict[str, dict[str, Affine]] = {}
    for block in stack.blocks:
        for role, module in body.get_submodule(block).named_modules():
            affine = affine_of(module, width) if is_norm(module) else None
            if affine is not None and len(affine.gain) == width:
                roles.setdefault(role, {})[f"{block}.{role}"] = affine
    return [
        _of_role(prefix_of(stack.name), role, width, norms, sigmas)
        for role, norms in roles.items()
    ]


def _of_role(
    prefix: str, role: str, width: int, norms: dict[str, Affine], sigmas: float
) -> RoleOutliers:
    found = [
        NormOutliers(name, outlying(affine.gain, sigmas), outlying(affine.bias, sigmas))
        for name, affine in norms.items()
    ]
    gain = _common([each.gain for each in found])
    bias = _common([each.bias for each in found])
    return RoleOutliers(
        stack=prefix,
        role=role,
        layers=len(found),
        width=width,
        common_gain=gain,
        common_bias=bias,
        common_both=[each for each in gain if each in bias],
        norms=found,
    )


def _common(lists: list[list[int]]) -> dict[int, int]:
    counts = Counter(each for one in lists for each in one)
    return {index: n for index, n in counts.most_common() if n > len(lists) / 2}
