"""One autograd function for all penalties: rows in, one number out, a closed-form gradient.

Autograd through the published formula keeps every intermediate result and differentiates an
eigendecomposition. Here a score returns its value and, for the backward pass, its slope.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from isoscope.control.penalty.row_selection import LayerSpec, RowSelection, sum_dtype
from isoscope.control.processes import World

Slope = Callable[[float], Tensor]  # (k, d): the derivative by each row, times a number


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
