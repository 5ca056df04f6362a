"""The norm a stack ends with, and what it makes of its input before gain and bias."""

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, rms_norm

# How far a recomputed output may be from the real one, as a share of its largest number.
_EXACT, _COARSE = 1e-4, 3e-2


def is_norm(module: nn.Module) -> bool:
    """Whether a module normalises each row: LayerNorm, RMSNorm and their kin."""
    kind = type(module).__name__.lower()
    others = ("weight", "batch", "group", "instance")
    return "norm" in kind and not any(o in kind for o in others) and not list(module.children())


def normalised(norm: nn.Module, given: Tensor, *, centred: bool | None = None) -> Tensor:
    """Return what a norm makes of its input before gain and bias.

    LayerNorm centres and divides by the standard deviation, RMSNorm by the root of the
    mean square. In float32 at least, as the norms themselves do.
    """
    if given.dtype != torch.float64:
        given = given.float()
    if centred is None:
        centred = isinstance(norm, nn.LayerNorm) or getattr(norm, "bias", None) is not None
    eps = getattr(norm, "eps", getattr(norm, "variance_epsilon", 1e-6))
    width = (given.shape[-1],)
    if centred:
        return layer_norm(given, width, eps=float(eps or 0.0))
    return rms_norm(given, width, eps=None if eps is None else float(eps))


def centring(norm: nn.Module, given: Tensor, said: Tensor) -> bool | None:
    """Return whether a norm centres, told by its output; None if neither explains it."""
    found = match_norm(norm, given, said)
    return None if found is None else found[0]


def match_norm(norm: nn.Module, rows: Tensor, output: Tensor) -> tuple[bool, float] | None:
    """Return whether a norm centres, and what it adds to its weight: 0, or 1 as in Gemma.

    Classes differ in what they do with their parameters, so every way is tried: gain and bias
    applied to the normalised rows must give the output. None where no way does.
    """
    limit = _EXACT if output.dtype in (torch.float32, torch.float64) else _COARSE
    scale = output.float().abs().max().clamp_min(torch.finfo(torch.float32).tiny)
    for centred in (True, False):
        middle = normalised(norm, rows, centred=centred)
        weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
        weight = torch.ones_like(middle[..., :1]) if weight is None else weight.to(middle)
        bias = torch.zeros_like(middle[..., :1]) if bias is None else bias.to(middle)
        for added in (0.0, 1.0):
            expected = middle * (added + weight) + bias
            if (expected - output.float()).abs().max() <= limit * scale:
                return centred, added
    return None
