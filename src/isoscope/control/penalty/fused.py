"""One autograd function for all penalties: rows in, one number out, a closed-form gradient.

Autograd through the published formula keeps every intermediate result and differentiates an
eigendecomposition. Here a score says its value and, when asked, its slope at each row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isoscope.control.penalty.cloud import Cloud, Like, working
from isoscope.control.world import Join

Slope = Callable[[float], Tensor]  # (k, d): the derivative by each row, times a number


@dataclass(frozen=True)
class Outcome:
    """The value of a score, and its slope where it has one that is not zero."""

    value: float
    slope: Slope | None = None
    defined: bool = True


UNDEFINED = Outcome(0.0, None, defined=False)


class Score(Protocol):
    """Something that reads one number off a cloud."""

    def __call__(self, rows: Tensor, cloud: Cloud, join: Join) -> Outcome:
        """Return the outcome for the rows (k, d) of this process and those of the others."""
        ...


@dataclass
class Evaluation:
    """One look of a score at a cloud; the outcome is there once it was applied."""

    score: Score | None  # None gives zero, and no collective is called
    cloud: Cloud | None
    join: Join
    outcome: Outcome = field(default=UNDEFINED)

    def of(self, layers: Sequence[Tensor]) -> Tensor:
        """Return the value as a tensor that knows its gradient."""
        return _Fused.apply(self, *layers)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, evaluation: Evaluation, *layers: Tensor) -> Tensor:
        last = layers[-1]
        if evaluation.score is not None and evaluation.cloud is not None:
            # Autocast would make the products in half precision, where sums are lost.
            with torch.autocast(last.device.type, enabled=False):
                rows = evaluation.cloud.gathered(layers)
                evaluation.outcome = evaluation.score(rows, evaluation.cloud, evaluation.join)
        ctx.evaluation = evaluation
        ctx.likes = [Like.of(layer) for layer in layers]
        value = evaluation.outcome.value
        return torch.tensor(value, dtype=working(last.dtype), device=last.device)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *upstream: Tensor
    ) -> tuple[Tensor | None, ...]:
        evaluation: Evaluation = ctx.evaluation
        slope, cloud = evaluation.outcome.slope, evaluation.cloud
        if slope is None or cloud is None:
            # Zeros rather than nothing: data parallel waits for a gradient of every parameter.
            return None, *(like.zeros() for like in ctx.likes)
        with torch.autocast(upstream[0].device.type, enabled=False):
            # Data parallel averages gradients, while these rows are a part of one large batch.
            gradient = slope(float(upstream[0]) * evaluation.join.size)
        return None, *cloud.scattered(gradient, ctx.likes)
