"""The stable covariance that IsoScore* shrinks to, from one pass over training batches."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.accumulate import Moments, merged
from isoscope.capture.blocks import TensorBlock, TensorLayout
from isoscope.control.penalty.cloud import working
from isoscope.control.penalty.hidden import Layers, chosen_layers, real_places
from isoscope.control.world import Join
from isoscope.errors import ConfigError, StreamError

TOKENS = 250_000  # as published


@torch.no_grad()
def streamed(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    tokens: int = TOKENS,
    layers: Layers = "all",
    per_layer: bool = False,
    joined: bool = True,
) -> Tensor:
    """Return the covariance of the hidden states of at most so many real tokens.

    Batches are what the model is called with, by name. The model is put into evaluation
    mode and back. (d, d) for all layers together, (layers, d, d) for each by itself.
    """
    join = Join.found(joined)
    left = checked_tokens(tokens) // join.size
    sums: list[Moments] = []
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        for batch in batches:
            if left < 1:
                break
            left -= _taken(model, batch, layers, per_layer, left, sums)
    finally:
        for module, mode in modes:
            module.training = mode
    clouds = _of_all_processes(sums, join)
    if not clouds or min(each.count for each in clouds) < 2:
        raise _empty()
    found = [torch.from_numpy(each.finalize().covariance).float() for each in clouds]
    return (torch.stack(found) if per_layer else found[0]).to(_device(model))


def _of_all_processes(sums: list[Moments], join: Join) -> list[Moments]:
    """Return the moments of each cloud over all processes; some may have had no batch."""
    states = join.gather_objects([(each.width, each.state()) for each in sums])
    parts = [[Moments.from_state(s, width=d) for d, s in each] for each in states if each]
    return [merged(cloud) for cloud in zip(*parts, strict=True)]


def _device(model: nn.Module) -> torch.device:
    return next((each.device for each in model.parameters()), torch.device("cpu"))


def _taken(
    model: nn.Module,
    batch: Any,
    layers: Layers,
    per_layer: bool,
    most: int,
    sums: list[Moments],
) -> int:
    """Add the rows of a batch to the sums, and return how many real tokens it had."""
    inputs = _on_device(model, batch)
    output = model(**{**inputs, "output_hidden_states": True})
    seen = chosen_layers(output, layers)
    real = real_places(seen[0], inputs.get("attention_mask"))
    places = torch.arange(seen[0].shape[:-1].numel())
    if real is not None:
        places = places[torch.from_numpy(real)]
    places = places[:most]
    rows = [each.reshape(-1, each.shape[-1])[places.to(each.device)] for each in seen]
    clouds = rows if per_layer else [torch.cat([each.to(rows[-1].device) for each in rows])]
    if not sums:
        sums.extend(Moments(each.shape[1]) for each in clouds)
    for total, each in zip(sums, clouds, strict=True):
        total.update(_block(each, total.documents))
    return len(places)


def _on_device(model: nn.Module, batch: Any) -> dict[str, Any]:
    if not isinstance(batch, Mapping):
        raise StreamError(
            f"expected batches of named tensors, got {type(batch).__name__}",
            hint="give dictionaries as a tokenizer makes them: input_ids, attention_mask",
            slug="stream-batches",
        )
    device = _device(model)
    named = cast(Mapping[str, Any], batch)
    return {
        name: value.to(device) if isinstance(value, Tensor) else value
        for name, value in named.items()
    }


def _block(rows: Tensor, number: int) -> TensorBlock:
    """Return the finite rows of a batch as one document of this number."""
    index = rows.isfinite().all(dim=1).nonzero()[:, 0]
    document = np.full(len(index), number, dtype=np.uint64)
    positions = np.arange(len(index), dtype=np.uint64)
    layout = TensorLayout(document, positions, index=index)
    return TensorBlock(rows, layout, sketched=False)


def _empty() -> StreamError:
    return StreamError(
        "a shrinkage matrix needs at least 2 real tokens, got fewer",
        hint="give batches with real tokens; a generator may have been used up before",
        slug="stream-batches",
    )


def checked_tokens(tokens: Any) -> int:
    """Return how many tokens a matrix is made of, or refuse fewer than two."""
    if not isinstance(tokens, int) or tokens < 2:
        raise ConfigError(
            f"expected 2 tokens or more for a shrinkage matrix, got {tokens}",
            hint="the paper takes 250,000",
            slug="stream-batches",
        )
    return tokens


def checked_matrix(matrix: Tensor) -> Tensor:
    """Return a covariance to shrink to, (d, d) or one for each layer, or refuse it."""
    square = matrix.ndim in (2, 3) and matrix.shape[-1] == matrix.shape[-2]
    if not square or not bool(matrix.isfinite().all()) or not _symmetric(matrix):
        raise ConfigError(
            f"expected a covariance (d, d) to shrink towards, got {tuple(matrix.shape)} "
            "that is not symmetric and finite",
            hint="give torch.cov of rows, or let stream find it",
            slug="shrinkage-matrix",
        )
    return matrix.detach().to(working(matrix.dtype)).clone()


def _symmetric(matrix: Tensor) -> bool:
    size = float(matrix.abs().max()) if matrix.numel() else 0.0
    return torch.allclose(matrix, matrix.mT, rtol=1e-4, atol=1e-5 * size)
