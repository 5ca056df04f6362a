"""Gain and bias of a norm, as it applies them: w, or 1 + w as in Gemma; a bias or none."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isoscope.capture.norm import fit_norm
from isoscope.types import Array


@dataclass(frozen=True)
class Affine:
    """What a norm does after normalising: gain times x, plus bias; float64."""

    gain: Array  # (d,)
    bias: Array | None  # (d,), None where there is none
    centred: bool  # LayerNorm takes each row's mean away, RMSNorm does not


def affine_of(norm: nn.Module, width: int) -> Affine | None:
    """Return the gain and bias of a norm; None if no gain and bias explain what it says.

    Classes differ in what they do with their parameters, so the norm is tried on a few
    random rows and the parameters are read in the way that gives what it said.
    """
    like = next(norm.parameters(), torch.zeros(1))
    rows = torch.randn((4, width), generator=torch.Generator().manual_seed(0)) + 0.5
    rows = rows.to(like.device, like.dtype)
    try:
        with torch.inference_mode():
            said = norm(rows)
    except (TypeError, RuntimeError):  # it wants more than rows, or rows of another width
        return None
    if not isinstance(said, Tensor) or said.shape != rows.shape:
        return None
    fit = fit_norm(norm, rows, said)
    if fit is None:
        return None
    return Affine(_array(fit.gain), None if fit.bias is None else _array(fit.bias), fit.centred)


def _array(tensor: Tensor) -> Array:
    return tensor.cpu().numpy().copy()
