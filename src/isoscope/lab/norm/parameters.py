"""Gain and bias of norms: what the final one would do by itself, and which stand out.

Machina & Mercer: how much cosine would the bias of the final norm alone give the output?
Kovaleva: gains and biases beyond three standard deviations, layer after layer.
"""

from collections import Counter

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.capture.norm import fit_norm, is_norm
from isoscope.capture.stacks import Stack, find_stacks
from isoscope.dataclass import dataclass
from isoscope.errors import UndefinedError
from isoscope.lab.norm.results import SIGMAS, FinalNorm, NormOutliers, RoleOutliers
from isoscope.site import STACKS, Site, prefix_of
from isoscope.study.model import ModelSites
from isoscope.types import Array

NO_BIAS = (
    "{kind} has no bias: it adds no direction of its own, and there is no r and no reference"
)
REFERENCE = (
    "exact when the normalised vectors have mean zero and each dimension mean square one, up "
    "to the spread of their norms; a reference, not a bound: gain times their mean may add to "
    "the bias or cancel it"
)


@dataclass(frozen=True)
class Affine:
    """What a norm does after normalising: gain times x, plus bias; float64."""

    gain: Array  # (d,)
    bias: Array | None  # (d,), None where there is none
    centred: bool  # LayerNorm subtracts the mean of each row, RMSNorm does not

    @property
    def ratio(self) -> float | None:
        """R = |bias| / |gain|; None without a bias."""
        gain = float(np.linalg.norm(self.gain))
        return (
            None if self.bias is None or not gain else float(np.linalg.norm(self.bias)) / gain
        )

    @property
    def reference(self) -> float | None:
        """The mean cosine of the output if nothing but the bias were common to it."""
        return None if self.ratio is None else reference_cosine(self.ratio)


def affine_of(norm: nn.Module, width: int) -> Affine | None:
    """Return the gain and bias of a norm; None if no gain and bias explain its output.

    The norm is tried on a few random rows, and its parameters are read in the way that gives
    its output.
    """
    like = next(norm.parameters(), torch.zeros(1))
    rows = torch.randn((4, width), generator=torch.Generator().manual_seed(0)) + 0.5
    rows = rows.to(like.device, like.dtype)
    try:
        with torch.inference_mode():
            output = norm(rows)
    except (TypeError, RuntimeError):  # it takes more than rows, or rows of another width
        return None
    same = isinstance(output, Tensor) and output.shape == rows.shape
    fit = fit_norm(norm, rows, output) if same else None
    if fit is None:
        return None
    bias = None if fit.bias is None else fit.bias.numpy().copy()
    return Affine(fit.gain.numpy().copy(), bias, fit.centred)


def final_affines(subject: ModelSites) -> dict[str, tuple[str, Affine]]:
    """Return the module, gain and bias of the final norm of each stack, by site."""
    found: dict[str, tuple[str, Affine]] = {}
    for stack in STACKS:
        tap = subject.sites.taps.get(str(Site("norm", part="in", stack=stack)))
        if tap is None:
            continue
        module = subject.sites.body.get_submodule(tap.module)
        affine = affine_of(module, subject.sites.widths[tap.site])
        if affine is None:
            kind = type(module).__name__
            raise UndefinedError(
                f"expected {tap.module} ({kind}) to multiply by a gain and add a bias, "
                "got something else",
                hint="read norm.in and norm.out of a survey instead; they need no parameters",
                slug="norm-unknown",
            )
        found[str(Site("norm", stack=stack))] = tap.module, affine
    if not found:
        raise no_final_norm(subject.loaded.name)
    return found


def final_norms(subject: ModelSites, sigmas: float = SIGMAS) -> list[FinalNorm]:
    """Return the final norm of each stack of a model; encoder-decoders have two."""
    found: list[FinalNorm] = []
    for site, (module, affine) in final_affines(subject).items():
        kind = type(subject.sites.body.get_submodule(module)).__name__
        found.append(
            FinalNorm(
                site=site,
                module=module,
                kind=kind,
                centred=affine.centred,
                width=len(affine.gain),
                gain_norm=float(np.linalg.norm(affine.gain)),
                bias_norm=None if affine.bias is None else float(np.linalg.norm(affine.bias)),
                ratio=affine.ratio,
                reference=affine.reference,
                gain_outliers=outlier_dimensions(affine.gain, sigmas),
                bias_outliers=outlier_dimensions(affine.bias, sigmas),
                remark=NO_BIAS.format(kind=kind) if affine.bias is None else REFERENCE,
            )
        )
    return found


def reference_cosine(ratio: float) -> float:
    """Return r^2 / (1 + r^2), whatever the size of r."""
    return 1.0 / (1.0 + ratio**-2) if ratio > 1 else ratio**2 / (1.0 + ratio**2)


def no_final_norm(name: str) -> UndefinedError:
    """Return the error for a model, or a run of one, that ends without a norm."""
    return UndefinedError(
        f"expected a norm after the last block of {name}, got none",
        hint="post-norm and pre-norm Transformers have one; of a run, survey the sites norm",
        slug="no-final-norm",
    )


def role_outliers(subject: ModelSites, sigmas: float = SIGMAS) -> list[RoleOutliers]:
    """Return the dimensions whose norm parameters stand out, role by role.

    Norms are those within blocks that work on the width of the stream; the final norm of a
    pre-norm model stands alone and is in `final_norms`.
    """
    body = subject.sites.body
    found: list[RoleOutliers] = []
    for stack in find_stacks(body):
        width = subject.sites.widths.get(str(Site("embed", stack=stack.name)))
        if width is not None:
            found += _roles_of_stack(body, stack, width, sigmas)
    if not found:
        raise UndefinedError(
            f"expected norms in the blocks of {subject.loaded.name}, got none",
            hint="only Transformers have norms in their blocks",
            slug="no-norms",
        )
    return found


def outlier_dimensions(values: Array | None, sigmas: float = SIGMAS) -> list[int]:
    """Return where values are farther than this many standard deviations from their mean."""
    if values is None or not values.std():
        return []
    far = np.abs(values - values.mean()) > sigmas * values.std()
    return [int(i) for i in np.flatnonzero(far)]


def _roles_of_stack(
    body: nn.Module, stack: Stack, width: int, sigmas: float
) -> list[RoleOutliers]:
    roles: dict[str, list[NormOutliers]] = {}
    for block in stack.blocks:
        for role, module in body.get_submodule(block).named_modules():
            affine = affine_of(module, width) if is_norm(module) else None
            if affine is not None and len(affine.gain) == width:
                gain, bias = (
                    outlier_dimensions(each, sigmas) for each in (affine.gain, affine.bias)
                )
                roles.setdefault(role, []).append(NormOutliers(f"{block}.{role}", gain, bias))
    found: list[RoleOutliers] = []
    for role, norms in roles.items():
        gains, biases = (_common([e.gain for e in norms]), _common([e.bias for e in norms]))
        found.append(
            RoleOutliers(
                stack=prefix_of(stack.name),
                role=role,
                layers=len(norms),
                width=width,
                common_gain=gains,
                common_bias=biases,
                common_both=[each for each in gains if each in biases],
                norms=norms,
            )
        )
    return found


def _common(lists: list[list[int]]) -> dict[int, int]:
    counts = Counter(each for one in lists for each in one)
    return {index: n for index, n in counts.most_common() if n > len(lists) / 2}
