"""The final norm (Machina & Mercer): how much cosine would its bias alone give the output?"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.lab.norm.affine import Affine, affine_of
from isoscope.lab.norm.outliers import SIGMAS, outlying
from isoscope.lab.plain import Plain
from isoscope.site import STACKS, Site
from isoscope.study.model import subject_of
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
class FinalNorm(Plain):
    """Gain and bias of the norm after the last block, and what they would make by themselves.

    r = |bias| / |gain|, and r^2 / (1 + r^2) is the mean cosine of its output if nothing but
    the bias is common to the vectors.
    """

    site: str  # "norm" with the stack before it
    module: str
    kind: str  # class of the norm
    centred: bool  # whether it takes the mean of each row away
    width: int
    gain_norm: float
    bias_norm: float | None
    ratio: float | None
    reference: float | None
    gain_outliers: list[int]  # dimensions beyond so many sigmas of all gains
    bias_outliers: list[int]
    remark: str
    affine: Affine = field(repr=False, metadata={"told": False})


def final_norms(model: Any, *, sigmas: float = SIGMAS, **given: Any) -> list[FinalNorm]:
    """Return the final norm of each stack of a model; encoder-decoders have two."""
    subject = subject_of(model, **given)
    found: list[FinalNorm] = []
    for stack in STACKS:
        tap = subject.sites.taps.get(str(Site("norm", part="in", stack=stack)))
        if tap is None:
            continue
        module = subject.sites.body.get_submodule(tap.module)
        width = subject.sites.widths[tap.site]
        affine = affine_of(module, width)
        if affine is None:
            raise _unexplained(tap.module, type(module).__name__)
        names = str(Site("norm", stack=stack)), tap.module, type(module).__name__
        found.append(_described(*names, affine, sigmas))
    if not found:
        raise no_final_norm(subject.loaded.name)
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


def _described(site: str, module: str, kind: str, affine: Affine, sigmas: float) -> FinalNorm:
    gain_norm = _norm(affine.gain)
    bias_norm = None if affine.bias is None else _norm(affine.bias)
    ratio = bias_norm / gain_norm if bias_norm is not None and gain_norm else None
    return FinalNorm(
        site=site,
        module=module,
        kind=kind,
        centred=affine.centred,
        width=len(affine.gain),
        gain_norm=gain_norm,
        bias_norm=bias_norm,
        ratio=ratio,
        reference=None if ratio is None else reference_cosine(ratio),
        gain_outliers=outlying(affine.gain, sigmas),
        bias_outliers=outlying(affine.bias, sigmas),
        remark=NO_BIAS.format(kind=kind) if bias_norm is None else REFERENCE,
        affine=affine,
    )


def _norm(vector: Array) -> float:
    return float(np.linalg.norm(vector))


def _unexplained(module: str, kind: str) -> UndefinedError:
    return UndefinedError(
        f"expected {module} ({kind}) to multiply by a gain and add a bias, got something else",
        hint="read norm.in and norm.out of a survey instead; they need no parameters",
        slug="norm-unknown",
    )
