"""Gain and bias of a norm, as it applies them: w, or 1 + w as in Gemma; a bias or none."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isoscope.capture.norm import normalised
from isoscope.types import Array

# How far a recomputed output may be from the real one, as a share of its largest number.
_EXACT, _COARSE = 1e-4, 3e-2


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
    limit = _EXACT if rows.dtype in (torch.float32, torch.float64) else _COARSE
    scale = said.double().abs().max().clamp_min(1e-30)
    for centred in (True, False):
        middle = normalised(norm, rows, centred=centred).double()
        for gain, bias in _candidates(norm, middle[0]):
            expected = middle * gain + (0.0 if bias is None else bias)
            if (expected - said.double()).abs().max() <= limit * scale:
                return Affine(_array(gain), None if bias is None else _array(bias), centred)
    return None


def _candidates(norm: nn.Module, like: Tensor) -> Iterator[tuple[Tensor, Tensor | None]]:
    weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
    shift = bias.detach().to(like) if isinstance(bias, Tensor) else None
    if not isinstance(weight, Tensor):
        yield torch.ones_like(like), shift
        return
    yield weight.detach().to(like), shift
    yield 1 + weight.detach().to(like), shift


def _array(tensor: Tensor) -> Array:
    return tensor.cpu().numpy().copy()
