"""The stable covariance that IsoScore* shrinks to, from one pass over training batches."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from isoscope.control.listening import Pass, SiteListener, device_of, evaluating
from isoscope.control.penalty.product import symmetric_product
from isoscope.control.penalty.row_selection import Layers, layer_numbers, real_places, sum_dtype
from isoscope.control.processes import World
from isoscope.errors import ConfigError, StreamError

TOKENS = 250_000  # as published


class RunningCovariance:
    """Sums of rows about an origin, the mean of the first block, which blocks add to."""

    def __init__(self, width: int, device: torch.device) -> None:
        # Apple's devices have no float64.
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.count = 0
        self.origin = torch.zeros(width, dtype=dtype, device=device)
        self.total = torch.zeros_like(self.origin)  # of rows less the origin
        self.scatter = torch.zeros(width, width, dtype=dtype, device=device)

    def add(self, rows: Tensor) -> None:
        """Add a block (k, d); rows with NaN or infinity are skipped."""
        block = rows.to(sum_dtype(rows.dtype))
        block = block[block.isfinite().all(dim=1)]
        if not self.count and len(block):
            self.origin = block.mean(dim=0).to(self.origin)
        about = block - self.origin.to(block)
        self.count += len(block)
        self.total += about.sum(dim=0)
        self.scatter += symmetric_product(about)

    def covariance(self, world: World) -> Tensor:
        """Return the covariance (d, d) of the rows of all processes."""
        sums = torch.cat(
            [self.origin * self.count + self.total, self.total.new_tensor([self.count])]
        )
        count = int(world.sum(sums)[-1])
        if count < 2:
            raise _no_tokens()
        # About the mean of all: scatter - s t' - t s' + n s s', with s the mean less the origin
        shift = sums[:-1] / count - self.origin
        cross = torch.outer(shift, self.total - shift * self.count / 2)
        return (world.sum(self.scatter - cross - cross.T) / (count - 1)).float()


@torch.no_grad()
def streamed(
    model: nn.Module,
    batches: Iterable[Mapping[str, object]],
    *,
    tokens: int = TOKENS,
    sites: str | Sequence[str] = "resid",
    layers: Layers = "all",
    per_layer: bool = False,
    joined: bool = True,
    modules: Sequence[str] | None = None,
) -> Tensor:
    """Return the covariance of the sites of a model over at most this number of real tokens.

    Batches are what the model is called with, by name. The model is put into evaluation
    mode and back. (d, d) for all layers together, (layers, d, d) for each by itself.
    """
    world = World.current(joined)
    left = check_tokens(tokens) // world.size
    listener = SiteListener(model, sites, modules)
    listener.names = tuple(
        listener.names[number] for number in layer_numbers(layers, len(listener.names))
    )
    sums: dict[str, RunningCovariance] = {}
    taken = 0  # real tokens of the batch under way

    def hear(current: Pass | None, site: str, tensor: Tensor) -> None:
        nonlocal taken
        real = real_places(tensor, None if current is None else current.mask)
        rows = tensor.reshape(-1, tensor.shape[-1])
        if real is not None:
            rows = rows[torch.from_numpy(real).to(rows.device)]
        rows = rows[:left]
        taken = len(rows)
        key = site if per_layer else ""
        if key not in sums:
            sums[key] = RunningCovariance(rows.shape[1], rows.device)
        sums[key].add(rows)

    device = device_of(model)
    with evaluating(model), listener.listening(hear):
        for batch in batches:
            if left < 1:
                break
            if not hasattr(batch, "items"):
                raise StreamError(
                    f"expected batches of named tensors, got {type(batch).__name__}",
                    hint="give dictionaries as a tokenizer makes them: input_ids, "
                    "attention_mask",
                    slug="stream-batches",
                )
            model(
                **{
                    name: value.to(device) if isinstance(value, Tensor) else value
                    for name, value in batch.items()
                }
            )
            left -= taken
    parts = [sums[name] for name in (listener.names if per_layer else ("",)) if name in sums]
    found = [each.covariance(world) for each in _known_to_all(parts, device, world)]
    return torch.stack(found) if per_layer else found[0]


def _known_to_all(
    sums: list[RunningCovariance], device: torch.device, world: World
) -> list[RunningCovariance]:
    """Return the sums, empty ones in a process that had no batch, so that it can take part."""
    mine = [len(sums), len(sums[0].origin) if sums else 0]
    clouds, width = map(max, zip(*world.gather(mine, device), strict=True))
    if not clouds:
        raise _no_tokens()
    return sums or [RunningCovariance(width, device) for _ in range(clouds)]


def _no_tokens() -> StreamError:
    return StreamError(
        "a shrinkage matrix needs at least 2 real tokens, got fewer",
        hint="give batches with real tokens; a generator may have been used up before",
        slug="stream-batches",
    )


def check_tokens(tokens: object) -> int:
    """Return the number of tokens that a matrix is made of, or refuse fewer than two."""
    if not isinstance(tokens, int) or tokens < 2:
        raise ConfigError(
            f"expected 2 tokens or more for a shrinkage matrix, got {tokens}",
            hint="the paper takes 250,000",
            slug="stream-batches",
        )
    return tokens


def check_matrix(matrix: Tensor) -> Tensor:
    """Return a covariance to shrink to, (d, d) or one for each layer, or refuse it."""
    square = matrix.ndim in (2, 3) and matrix.shape[-1] == matrix.shape[-2]
    size = float(matrix.abs().max()) if matrix.numel() else 0.0
    if (
        not square
        or not bool(matrix.isfinite().all())
        or not torch.allclose(matrix, matrix.mT, rtol=1e-4, atol=1e-5 * size)
    ):
        raise ConfigError(
            f"expected a covariance (d, d) to shrink towards, got {tuple(matrix.shape)} "
            "that is not symmetric and finite",
            hint="give torch.cov of rows, or let stream find it",
            slug="shrinkage-matrix",
        )
    return matrix.detach().to(sum_dtype(matrix.dtype)).clone()
