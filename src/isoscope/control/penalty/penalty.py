"""What all penalties share: where they look, how strong they are at each step, the value.

One autograd function serves all of them: rows in, one number out, a closed-form gradient.
Autograd through the published formula keeps every intermediate result and differentiates an
eigendecomposition. Here a score returns its value and, for the backward pass, its slope.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import cos, isfinite, pi
from typing import ClassVar, SupportsFloat, TypedDict

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from isoscope.control.listening import PUBLISHED, outside_graph, recomputing
from isoscope.control.penalty.row_selection import (
    Hidden,
    Layers,
    LayerSpec,
    Marks,
    RealTokens,
    RowSelection,
    select_layers,
    sum_dtype,
)
from isoscope.control.processes import World
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, PenaltyError

Slope = Callable[[float], Tensor]  # (k, d): the derivative by each row, times a number
Factor = Callable[[int], float]  # optimiser step, from 0: what the weight is multiplied by


@dataclass(frozen=True)
class ScoreResult:
    """The value of a score, and its slope where it has one that is not zero."""

    value: float
    slope: Slope | None = None
    defined: bool = True


UNDEFINED = ScoreResult(0.0, None, defined=False)


# One number of a cloud, from the rows (k, d) of this process and those of the others.
Score = Callable[[Tensor, RowSelection, World], ScoreResult]


@dataclass
class Evaluation:
    """A score and the rows it is computed from; the result is there once `of` was called."""

    score: Score | None  # None gives zero, and no collective is called
    selection: RowSelection | None
    world: World
    result: ScoreResult = UNDEFINED

    def of(self, layers: Sequence[Tensor]) -> Tensor:
        """Return the value as a tensor that knows its gradient."""
        return _Fused.apply(self, *layers)


class _Context(FunctionCtx):
    evaluation: Evaluation
    specs: list[LayerSpec]


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _Context, evaluation: Evaluation, *layers: Tensor) -> Tensor:
        last, selection = layers[-1], evaluation.selection
        if evaluation.score is not None and selection is not None:
            # Autocast would make the products in half precision, where sums are lost.
            with torch.autocast(last.device.type, enabled=False):
                rows = selection.gather(layers)
                evaluation.result = evaluation.score(rows, selection, evaluation.world)
        ctx.evaluation = evaluation
        ctx.specs = [LayerSpec(each.shape, each.dtype, each.device) for each in layers]
        return torch.tensor(
            evaluation.result.value, dtype=sum_dtype(last.dtype), device=last.device
        )

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: _Context, *upstream: Tensor
    ) -> tuple[Tensor | None, ...]:
        evaluation = ctx.evaluation
        slope, selection = evaluation.result.slope, evaluation.selection
        if slope is None or selection is None:
            # Zeros rather than nothing: data parallel waits for a gradient of every parameter.
            return None, *(spec.zeros() for spec in ctx.specs)
        with torch.autocast(upstream[0].device.type, enabled=False):
            # Data parallel averages gradients, while these rows are a part of one large batch.
            gradient = slope(float(upstream[0]) * evaluation.world.size)
        return None, *selection.scatter(gradient, ctx.specs)


def check_weight(weight: object) -> float:
    """Return a weight that a loss can be multiplied by, or refuse it."""
    if not isinstance(weight, SupportsFloat) or not isfinite(float(weight)):
        raise ConfigError(
            f"expected a finite number as the weight of a penalty, got {weight!r}",
            hint="give a number; 0 turns the penalty off, below 0 it asks for less isotropy",
            slug="penalty-weight",
        )
    return float(weight)


def check_count(name: str, value: object, least: int, hint: str) -> int:
    """Return a number of steps that is large enough, or refuse it."""
    if not isinstance(value, int) or value < least:
        raise ConfigError(
            f"expected a whole number of {least} or more as {name}, got {value!r}",
            hint=hint,
            slug="penalty-seed" if name == "seed" else "penalty-steps",
        )
    return value


@dataclass(frozen=True)
class Schedule:
    """A weight, raised linearly over the first steps and shaped by a factor after that.

    Calls are counted, so with gradient accumulation `accumulate` says how many of them
    make one step of the optimiser.
    """

    weight: float
    warmup: int = 0
    factor: Factor | None = None
    accumulate: int = 1

    def __post_init__(self) -> None:
        check_weight(self.weight)
        hint = "warmup counts optimiser steps, accumulate the batches of one step"
        check_count("warmup", self.warmup, 0, hint)
        check_count("accumulate", self.accumulate, 1, hint)

    def __str__(self) -> str:
        """Return the settings that are not the default."""
        parts = [f"weight={self.weight:g}"]
        parts += [f"warmup={self.warmup}"] if self.warmup else []
        if self.factor is not None:
            parts.append(f"schedule={getattr(self.factor, '__name__', self.factor)}")
        parts += [f"accumulate={self.accumulate}"] if self.accumulate > 1 else []
        return ", ".join(parts)

    def at(self, call: int) -> float:
        """Return the weight of a call; the first call has number 0 and a weight above zero."""
        step = call // self.accumulate  # of the optimiser, from 0
        warm = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        shaped = self.factor(step) if self.factor is not None else 1.0
        return check_weight(self.weight * warm * shaped)


@dataclass(frozen=True)
class linear:  # noqa: N801 - called like a function, and a class so that it can be pickled
    """Fall from 1 to 0 in a straight line over this number of steps, and stay there."""

    steps: int

    def __post_init__(self) -> None:
        hint = "give the steps of the optimiser over which the weight falls"
        check_count("steps of a schedule", self.steps, 1, hint)

    def __call__(self, step: int) -> float:
        """Return what the weight is multiplied by."""
        return max(0.0, 1.0 - step / self.steps)


@dataclass(frozen=True)
class cosine(linear):  # noqa: N801
    """Fall from 1 to 0 along half a cosine over this number of steps, and stay there."""

    def __call__(self, step: int) -> float:
        """Return what the weight is multiplied by."""
        return (1.0 + cos(pi * min(step / self.steps, 1.0))) / 2.0


class Options(TypedDict, total=False):
    """The keywords that every penalty takes; `Penalty` says what they mean."""

    sites: str | Sequence[str]
    layers: Layers | None
    rows: int | None
    per_layer: bool | None
    warmup: int
    schedule: Factor | None
    accumulate: int
    seed: int
    join: bool


class Penalty(nn.Module, ABC):
    """A term of the loss, computed from hidden states; zero, never NaN, where undefined.

    In a trainer, or in a block of `penalised`, it listens at `sites`: "resid", the stream
    after every block; one site, as "resid.3" or "norm.out"; several in a list; or
    "published", the layers of I-STAR: those of `hidden_states`, whose last entry is after
    the final norm where a model has one. `layers` takes some of them: "all", "last" or
    numbers from 0. They are one cloud, or with `per_layer` one each.

    Call it by yourself as `penalty(hidden, mask)`. Hidden states are a tensor (batch, time,
    d) or (n, d), a list of such tensors, or the output of a model called with
    `output_hidden_states=True`; the mask has a 1 for every real token. Only real tokens
    count, at most `rows` of them, drawn anew at every call from a `seed`.

    The weight rises over `warmup` steps, and `schedule` is a function of the step that it is
    multiplied by; `accumulate` is the number of calls in a step.

    With `torch.distributed` the batches of all processes are one cloud (`join`); each
    process then has to call the penalty equally often.
    """

    default_layers: ClassVar[Layers] = "all"  # the default of `layers`
    default_per_layer: ClassVar[bool] = False  # the default of `per_layer`
    lacks: ClassVar[bool] = False  # the score is what the measure lacks of 1

    def __init__(
        self,
        weight: float = 1.0,
        *,
        sites: str | Sequence[str] = "resid",
        layers: Layers | None = None,
        rows: int | None = 2048,
        per_layer: bool | None = None,
        warmup: int = 0,
        schedule: Factor | None = None,
        accumulate: int = 1,
        seed: int = 0,
        join: bool = True,
    ) -> None:
        super().__init__()
        self.schedule = Schedule(weight, warmup, schedule, accumulate)
        self.sites = sites if isinstance(sites, str) else tuple(sites)
        self.layers = self.default_layers if layers is None else layers
        if rows is not None and (type(rows) is not int or rows < 2):
            raise ConfigError(
                f"expected a budget of 2 rows or more, got {rows!r}",
                hint="give a whole number, or None to take every real token",
                slug="penalty-rows",
            )
        self.rows = rows
        self.per_layer = self.default_per_layer if per_layer is None else per_layer
        self.seed = check_count(
            "seed", seed, 0, "any such number will do; the same one draws the same rows"
        )
        self.join = join
        self.call = 0  # training calls so far
        self.step: int | None = None  # of the optimiser, where a trainer counts them
        self.reading: float | None = None  # the measure at the last call, None if undefined

    @property
    def weight(self) -> float:
        """The weight of the next call."""
        return self._weight(self.call)

    def _weight(self, call: int) -> float:
        first = None if self.step is None else self.step * self.schedule.accumulate
        return self.schedule.at(call if first is None else first)

    @abstractmethod
    def _score(self, number: int) -> Score:
        """Return what is computed from the cloud of this number."""

    def _prepare(self, layers: list[Tensor]) -> None:
        """Look at the layers before anything is computed."""

    def _finish(self, scores: list[Score | None]) -> None:
        """Look at the scores once all values are there."""

    def _in_halves(self, tokens: RealTokens) -> bool:
        """Whether the documents are dealt to two halves."""
        return False

    def forward(
        self, hidden: Hidden, mask: Marks | None = None, *, documents: Marks | None = None
    ) -> Tensor:
        """Return weight times the score of the hidden states, a scalar.

        `documents` numbers what belongs together: one number per sequence, or one per token
        where several documents are packed into a sequence. Without it a sequence is a
        document, and so is each row of a tensor (n, d).
        """
        if self.sites not in ("resid", PUBLISHED) and hasattr(hidden, "hidden_states"):
            raise PenaltyError(
                f"cannot find the sites {self.sites!r} in a model output",
                hint="penalised(model, penalty) and attach(trainer, penalty) listen at sites; "
                "or give the tensors themselves",
                slug="penalty-sites",
            )
        return self.evaluate(select_layers(hidden, self.layers), mask, documents=documents)

    @outside_graph
    def evaluate(
        self, layers: list[Tensor], mask: Marks | None = None, *, documents: Marks | None = None
    ) -> Tensor:
        """Return the penalty on these layers, which are chosen already."""
        if not self.per_layer:
            check_widths(layers)
        self._prepare(layers)
        number = self._count_call()
        weight = self._weight(number)
        world = World.current(weight != 0 and self.join and self._trains())
        tokens = RealTokens.of(layers[0], mask, documents, world)
        if weight == 0 or tokens.total < 2:  # one token has no shape, in however many layers
            self.reading = None
            return Evaluation(None, None, World()).of(layers)
        clouds = [[layer] for layer in layers] if self.per_layer else [layers]
        halved = self._in_halves(tokens)
        evaluations = [
            Evaluation(
                self._score(place),
                RowSelection.of(
                    tokens, cloud, self.rows, (self.seed, number, place), halved=halved
                ),
                world,
            )
            for place, cloud in enumerate(clouds)
        ]
        values = [each.of(cloud) for each, cloud in zip(evaluations, clouds, strict=True)]
        self._finish([each.score for each in evaluations])
        results = [each.result for each in evaluations if each.result.defined]
        readings = [1 - each.value if self.lacks else each.value for each in results]
        self.reading = sum(readings) / len(readings) if readings else None
        value = values[0] if len(values) == 1 else torch.stack(values).mean()
        return value * weight

    def _count_call(self) -> int:
        """Return the number of this call; only calls that train are counted."""
        if recomputing():
            return max(self.call - 1, 0)
        number = self.call
        self.call += self._trains()
        return number

    def _trains(self) -> bool:
        return self.training and torch.is_grad_enabled()

    def get_extra_state(self) -> Tensor:
        """Return the number of calls, so that a resumed run continues from there."""
        return torch.tensor([self.call])

    def set_extra_state(self, state: Tensor) -> None:
        """Take over the number of calls."""
        self.call = int(state[0])

    def extra_repr(self) -> str:
        """Return the settings."""
        own = f"{self.schedule}, sites={self.sites!r}, layers={self.layers!r}, rows={self.rows}"
        return own + (", per_layer=True" if self.per_layer else "")


def check_widths(layers: Sequence[Tensor]) -> None:
    """Refuse layers whose rows cannot be in one cloud."""
    widths = sorted({layer.shape[-1] for layer in layers})
    if len(widths) > 1:
        raise ConfigError(
            f"expected layers of one width, got widths {widths}",
            hint="take each layer by itself with per_layer=True, or choose layers",
            slug="penalty-layers",
        )
