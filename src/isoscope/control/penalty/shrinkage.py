"""The stable covariance that IsoScore* shrinks to, from one pass over training batches."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from isoscope.control.penalty.cloud import working
from isoscope.control.penalty.hidden import Layers, chosen_layers, real_places
from isoscope.control.watch.sums import Sums
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
    sums: list[Sums] = []
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
    found = [_covariance(each, join) for each in _known_to_all(sums, _device(model), join)]
    return torch.stack(found) if per_layer else found[0]


def _known_to_all(sums: list["Sums"], device: torch.device, join: Join) -> list["Sums"]:
    """Return the sums, empty ones in a process that had no batch, so that it can take part."""
    mine = [len(sums), len(sums[0].mean) if sums else 0]
    clouds, width = map(max, zip(*join.each(mine, device), strict=True))
    if not clouds:
        raise _empty()
    return sums or [Sums(torch.zeros(0, width, device=device)) for _ in range(clouds)]


def _device(model: nn.Module) -> torch.device:
    return next((each.device for each in model.parameters()), torch.device("cpu"))


def _taken(
    model: nn.Module,
    batch: Any,
    layers: Layers,
    per_layer: bool,
    most: int,
    sums: list["Sums"],
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
        sums.extend(Sums(each) for each in clouds)
    for total, each in zip(sums, clouds, strict=True):
        total.add(each)
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


def _covariance(sums: Sums, join: Join) -> Tensor:
    count, scatter = sums.joined(join)
    if count < 2:
        raise _empty()
    return (scatter / (count - 1)).float()


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
