"""Whether padding leaves real positions as they are: asked of the model itself."""

from typing import Any

import torch
from torch import Tensor, nn

from isoscope.capture.feed.batch import Batch
from isoscope.capture.tap import first_tensor

OUTPUTS = ("last_hidden_state", "encoder_last_hidden_state")


def padding_is_harmless(body: nn.Module, alone: Batch, padded: Batch) -> bool:
    """Whether the first document reads the same alone and beside a longer one.

    Signatures do not tell: mamba takes no heed of a mask and needs none, fnet mixes all
    positions and has none. The bound is the square root of the type's rounding, which is far
    above rounding and far below what half a row of padding does.
    """
    training = body.training
    body.eval()
    try:
        with torch.no_grad():
            one, two = _hidden(body(**alone.inputs)), _hidden(body(**padded.inputs))
    finally:
        body.train(training)
    return all(_agree(a[0], b[0, : a.shape[1]]) for a, b in zip(one, two, strict=True))


def _hidden(output: Any) -> list[Tensor]:
    found = [getattr(output, name, None) for name in OUTPUTS]
    tensors = [each for each in found if isinstance(each, Tensor)]
    first = first_tensor(output)
    return tensors or ([] if first is None else [first])


def _agree(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape:
        return False
    bound = torch.finfo(one.dtype).eps ** 0.5
    return bool((one - two).float().norm() <= bound * one.float().norm())
