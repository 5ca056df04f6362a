"""Norms: what they make of a row before gain and bias, and which gain and bias they apply."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, rms_norm

from isoscope.dataclass import dataclass

# How far a recomputed output may be from the real one, as a share of its largest number.
_EXACT, _COARSE = 1e-4, 3e-2


@dataclass(frozen=True)
class NormFit:
    """The formula that explains what a norm returns: gain times normalised row, plus bias."""

    centred: bool  # LayerNorm subtracts each row's mean, RMSNorm does not
    gain: Tensor  # (d,) float64
    bias: Tensor | None  # (d,) float64


def is_norm(module: nn.Module) -> bool:
    """Whether a module normalises each row: LayerNorm, RMSNorm and their kin."""
    kind = type(module).__name__.lower()
    others = ("weight", "batch", "group", "instance")
    return "norm" in kind and not any(o in kind for o in others) and not list(module.children())


def normalise(norm: nn.Module, rows: Tensor, *, centred: bool | None = None) -> Tensor:
    """Return what a norm makes of its input before gain and bias.

    LayerNorm centres and divides by the standard deviation, RMSNorm by the root of the
    mean square. In float32 at least, as the norms themselves do.
    """
    if rows.dtype != torch.float64:
        rows = rows.float()
    if centred is None:
        centred = isinstance(norm, nn.LayerNorm) or getattr(norm, "bias", None) is not None
    eps = getattr(norm, "eps", getattr(norm, "variance_epsilon", 1e-6))
    width = (rows.shape[-1],)
    if centred:
        return layer_norm(rows, width, eps=float(eps or 0.0))
    return rms_norm(rows, width, eps=None if eps is None else float(eps))


def fit_norm(norm: nn.Module, received: Tensor, returned: Tensor) -> NormFit | None:
    """Return how a norm computes, found by trial on an output; None if nothing explains it.

    Classes differ in what they do with their parameters: the gain is g, or 1 + g as in
    Gemma; there is a bias or none.
    """
    limit = _EXACT if returned.dtype in (torch.float32, torch.float64) else _COARSE
    output = returned.cpu().double()
    scale = output.abs().max().clamp_min(torch.finfo(torch.float32).tiny)
    for centred in (True, False):
        middle = normalise(norm, received, centred=centred).cpu().double()
        for gain, bias in _gains(norm, middle):
            expected = middle * gain + (0.0 if bias is None else bias)
            if (expected - output).abs().max() <= limit * scale:
                return NormFit(centred, gain, bias)
    return None


def _gains(norm: nn.Module, middle: Tensor) -> Iterator[tuple[Tensor, Tensor | None]]:
    weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
    shift = bias.detach().to(middle) if isinstance(bias, Tensor) else None
    if not isinstance(weight, Tensor):
        yield middle.new_ones(middle.shape[-1]), shift
        return
    yield weight.detach().to(middle), shift
    yield 1 + weight.detach().to(middle), shift
