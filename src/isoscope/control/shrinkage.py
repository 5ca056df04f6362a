"""The stable covariance that IsoScore* shrinks to, from one pass over training batches."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from isoscope.control.cloud import working
from isoscope.control.hidden import Layers, chosen_layers, real_places
from isoscope.control.join import Join
from isoscope.errors import ConfigError, PenaltyError


@torch.no_grad()
def streamed(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    tokens: int = 250_000,
    layers: Layers = "all",
    per_layer: bool = False,
    joined: bool = True,
) -> Tensor:
    """Return the covariance of the hidden states of at most so many real tokens.

    Batches are what the model is called with, by name. The model is put into evaluation
    mode and back. (d, d) for all layers together, (layers, d, d) for each by itself.
    """
    join = Join.found(joined)
    left = _checked(tokens) // join.size
    sums: list[_Sums] = []
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
    found = [each.covariance(join) for each in _known_to_all(sums, _device(model), join)]
    return torch.stack(found) if per_layer else found[0]


def _known_to_all(sums: list["_Sums"], device: torch.device, join: Join) -> list["_Sums"]:
    """Return the sums, empty ones in a process that had no batch, so that it can take part."""
    mine = [len(sums), len(sums[0].mean) if sums else 0]
    clouds, width = map(max, zip(*join.each(mine, device), strict=True))
    if not clouds:
        raise _empty()
    return sums or [_Sums(torch.zeros(0, width, device=device)) for _ in range(clouds)]


def _device(model: nn.Module) -> torch.device:
    return next((each.device for each in model.parameters()), torch.device("cpu"))


def _taken(
    model: nn.Module,
    batch: Any,
    layers: Layers,
    per_layer: bool,
    most: int,
    sums: list["_Sums"],
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
        sums.extend(_Sums(each) for each in clouds)
    for total, each in zip(sums, clouds, strict=True):
        total.add(each)
    return len(places)


def _on_device(model: nn.Module, batch: Any) -> dict[str, Any]:
    if not isinstance(batch, Mapping):
        raise PenaltyError(
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


class _Sums:
    """Count, mean and scatter of rows, added block by block about a running mean."""

    def __init__(self, like: Tensor) -> None:
        d = like.shape[-1]
        # Apple's devices have no float64.
        self.dtype = torch.float32 if like.device.type == "mps" else torch.float64
        self.count = 0
        self.mean = torch.zeros(d, dtype=self.dtype, device=like.device)
        self.scatter = torch.zeros(d, d, dtype=self.dtype, device=like.device)

    def add(self, rows: Tensor) -> None:
        """Add a block; rows that are not finite are left out."""
        block = rows.to(working(rows.dtype))
        block = block[block.isfinite().all(dim=1)]
        n = len(block)
        if not n:
            return
        mean = block.mean(dim=0)
        about = block - mean
        shift = mean.to(self.dtype) - self.mean
        total = self.count + n
        self.scatter += (about.T @ about).to(self.dtype)
        self.scatter += torch.outer(shift, shift) * (self.count * n / total)
        self.mean += shift * (n / total)
        self.count = total

    def covariance(self, join: Join) -> Tensor:
        """Return the covariance of the rows of all processes."""
        sums = torch.cat([self.mean * self.count, self.mean.new_tensor([self.count])])
        count = int(join.sum(sums)[-1])
        if count < 2:
            raise _empty()
        shift = self.mean - sums[:-1] / count
        scatter = self.scatter + torch.outer(shift, shift) * self.count
        return (join.sum(scatter) / (count - 1)).float()


def _empty() -> PenaltyError:
    return PenaltyError(
        "a shrinkage matrix needs at least 2 real tokens, got fewer",
        hint="give batches with real tokens; a generator may have been used up before",
        slug="stream-batches",
    )


def _checked(tokens: int) -> int:
    if tokens < 2:
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
