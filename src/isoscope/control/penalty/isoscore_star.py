"""IsoScore* as a training penalty (I-STAR): the differentiable twin of the measure.

The stable covariance that it shrinks to comes from one pass over training batches.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from isoscope.control.listening import Pass, SiteListener, device_of, evaluating, recomputing
from isoscope.control.penalty.penalty import (
    UNDEFINED,
    Options,
    Penalty,
    Score,
    ScoreResult,
    check_widths,
)
from isoscope.control.penalty.product import (
    Centred,
    Shape,
    divisible,
    scale_and_shift,
    scatter_of,
    symmetric_product,
)
from isoscope.control.penalty.row_selection import (
    Layers,
    RowSelection,
    layer_numbers,
    real_places,
    sum_dtype,
)
from isoscope.control.processes import World
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, StreamError
from isoscope.measures.isoscore_star import ZETA, check_zeta

TOKENS = 250_000  # as published
MEMORY = 100  # batches over which the running average looks back
TARGETS = ("scaled", "identity", "running", "streamed")


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


@dataclass
class StarScore:
    """1 - IsoScore of (1 - zeta) C + zeta C0; C0 is (tr C / d) I where there is no target."""

    zeta: float
    target: Tensor | None = None  # (d, d)
    keep: bool = False  # the covariance of the rows
    covariance: Tensor | None = None  # (d, d)

    def __call__(self, rows: Tensor, selection: RowSelection, world: World) -> ScoreResult:
        """Return the result for the rows of a cloud."""
        about = Centred.of(rows, world, owned=selection.is_copy)
        if about.count < 2 or rows.shape[1] < 2 or not about.spread:
            return UNDEFINED
        if not self.keep:
            if self.target is None:
                return self._scaled(about, Shape.of(about, world))
            shrunk = scatter_of(about.rows, world).mul_((1 - self.zeta) / (about.count - 1))
            return self._towards(about, shrunk.add_(self.target.to(shrunk), alpha=self.zeta))
        scatter = scatter_of(about.rows, world)
        self.covariance = scatter / (about.count - 1)
        if self.target is None:
            return self._scaled(about, Shape(scatter.div_(about.trace), False))
        target = self.target.to(self.covariance)
        return self._towards(about, torch.lerp(self.covariance, target, self.zeta))

    def _scaled(self, about: Centred, shape: Shape) -> ScoreResult:
        """With W = C / tr C and p = |W|^2:  1 / PR* = (1-zeta)^2 p + (2 zeta - zeta^2) / d."""
        d, left = about.rows.shape[1], (1 - self.zeta) ** 2
        p = shape.concentration
        ratio = 1 / (left * p + (1 - left) / d)
        scale = 4 * left * ratio**2 / (about.trace * (d - 1))

        def slope(factor: float) -> Tensor:  # of 1 - IsoScore*; dp = 4 / tr M (Y W - p Y)
            return shape.times(about.rows, factor * scale, p)

        return ScoreResult(1 - (ratio - 1) / (d - 1), slope)

    def _towards(self, about: Centred, shrunk: Tensor) -> ScoreResult:
        """With S = (1-zeta) C + zeta C0 and V = S / tr S:  PR* = 1 / |V|^2."""
        d = about.rows.shape[1]
        trace = float(shrunk.diagonal().sum())
        if not divisible(trace, shrunk.dtype):
            return UNDEFINED
        shape = shrunk.div_(trace)
        ratio = 1 / float(shape.square().sum())
        scale = 4 * (1 - self.zeta) * ratio / ((about.count - 1) * trace * (d - 1))

        def slope(factor: float) -> Tensor:
            return about.rows @ scale_and_shift(shape, factor * scale * ratio, -factor * scale)

        return ScoreResult(1 - (ratio - 1) / (d - 1), slope)


class IStar(Penalty):
    """Adds weight * (1 - IsoScore*) to the loss: I-STAR, without its padding and its SVD.

    A positive weight spreads the variance over more dimensions, a negative one over fewer.
    By default the rows are those of all layers together; with `per_layer` each layer is a
    cloud of its own and the penalty is their mean.

    `towards` is what the covariance is shrunk to: "scaled", (tr C / d) I, which needs no
    pass and does not depend on scale; "running", the mean covariance of past batches;
    "streamed", the covariance of `tokens` tokens of the training data, as published, which
    a trainer finds anew at the start of each epoch, and `stream` in a loop of your own;
    "identity", the published fallback, which does depend on scale; or a matrix (d, d).
    What is in use is `shrinkage`, which is saved with the module.

    >>> import torch
    >>> penalty = IStar(weight=1.0)
    >>> hidden = torch.randn(4, 8, 16, generator=torch.manual_seed(0)).requires_grad_()
    >>> loss = penalty(hidden, torch.ones(4, 8))
    >>> loss.backward()
    >>> round(loss.item(), 3), round(penalty.reading, 3)
    (0.294, 0.706)
    """

    lacks = True
    shrinkage: Tensor | None

    def __init__(
        self,
        weight: float = 1.0,
        zeta: float = ZETA,
        *,
        towards: str | Tensor = "scaled",
        tokens: int = TOKENS,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(weight, **options)
        self.zeta = float(check_zeta(zeta))
        self.towards, matrix = _target(towards)
        self.tokens = check_tokens(tokens)
        self.register_buffer("shrinkage", matrix)
        self.averaged = 0  # batches in the running average
        self.register_load_state_dict_pre_hook(_make_room)

    def stream(
        self,
        model: torch.nn.Module,
        batches: Iterable[Mapping[str, object]],
        *,
        tokens: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> None:
        """Take the shrinkage matrix from at most this number of real tokens of the batches.

        Do it before training, or at the start of each epoch as published. With several
        processes each looks at its share of the tokens, and they are put together. Of a
        model that is not of transformers, name the modules.
        """
        self.shrinkage = streamed(
            model,
            batches,
            tokens=self.tokens if tokens is None else tokens,
            sites=self.sites,
            layers=self.layers,
            per_layer=self.per_layer,
            joined=self.join,
            modules=modules,
        )

    def _score(self, number: int) -> StarScore:
        target = self.shrinkage
        if target is not None and self.per_layer:
            target = target[number]
        return StarScore(self.zeta, target, keep=self.towards == "running")

    def _prepare(self, layers: list[Tensor]) -> None:
        if self.towards != "scaled":
            check_widths(layers)
        d, clouds = layers[-1].shape[-1], len(layers) if self.per_layer else None
        shape = (d, d) if clouds is None else (clouds, d, d)
        if self.towards == "identity" and self.shrinkage is None:
            self.shrinkage = torch.eye(d, device=layers[-1].device).expand(shape).clone()
        if self.towards == "streamed" and self.shrinkage is None:
            raise ConfigError(
                "expected a shrinkage matrix that was streamed, got none",
                hint="call penalty.stream(model, batches) before the first step and at the "
                "start of each epoch",
                slug="shrinkage-matrix",
            )
        if self.shrinkage is not None and tuple(self.shrinkage.shape) != shape:
            raise ConfigError(
                f"expected a shrinkage matrix of shape {shape}, "
                f"got {tuple(self.shrinkage.shape)}",
                hint="stream it again for these layers; with per_layer there is one per layer",
                slug="shrinkage-matrix",
            )

    def _finish(self, scores: list[Score | None]) -> None:
        """Take the covariances of this batch into the running average."""
        if self.towards != "running" or not self._trains() or recomputing():
            return
        found = [each.covariance for each in scores if isinstance(each, StarScore)]
        known = [each for each in found if each is not None]
        if len(known) < len(scores):
            return
        new = torch.stack(known) if self.per_layer else known[0]
        self.averaged = min(self.averaged + 1, MEMORY)
        if self.shrinkage is None:
            self.shrinkage = new.clone()
        else:
            self.shrinkage.lerp_(new.to(self.shrinkage), 1 / self.averaged)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{super().extra_repr()}, zeta={self.zeta:g}, towards={self.towards!r}"

    def get_extra_state(self) -> Tensor:
        """Return the counts that a resumed run continues from."""
        return torch.tensor([self.call, self.averaged])

    def set_extra_state(self, state: Tensor) -> None:
        """Take over the counts."""
        if state.numel() != 2:
            raise ConfigError(
                f"expected the state of {type(self).__name__}, got that of another penalty",
                hint="load what was saved from a penalty of the same kind",
                slug="checkpoint-state",
            )
        self.call, self.averaged = (int(number) for number in state)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "IStar":
        before = self.shrinkage
        super()._apply(fn, recurse)
        now = self.shrinkage
        if before is not None and now is not None and now.dtype.itemsize < 4:
            self.shrinkage = before.to(now.device)  # too coarse in half precision
        return self


def _make_room(module: IStar, state: dict[str, Tensor], prefix: str, *_rest: object) -> None:
    """Make room for a saved matrix, whose width was not known when the module was made."""
    saved, now = state.get(f"{prefix}shrinkage"), module.shrinkage
    if saved is not None:
        device = None if now is None else now.device
        module.shrinkage = torch.empty_like(check_matrix(saved), device=device)
    elif module.towards != "given":
        module.shrinkage = None  # saved before there was one


def _target(towards: str | Tensor) -> tuple[str, Tensor | None]:
    if isinstance(towards, Tensor):
        return "given", check_matrix(towards)
    if towards not in TARGETS:
        raise ConfigError(
            f"expected a matrix or one of {', '.join(TARGETS)} to shrink towards, "
            f"got {towards!r}",
            hint="take 'scaled', or 'running' for the mean covariance of past batches",
            slug="shrinkage-matrix",
        )
    if towards == "identity":
        warnings.warn(
            "shrinking towards the identity makes IsoScore* depend on the scale of the "
            "hidden states; 'scaled' does not",
            stacklevel=3,
        )
    return towards, None
