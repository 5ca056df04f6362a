"""Mean cosine as a training penalty: the differentiable twin of measure/mean_cosine.py."""

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.control.penalty.base import Penalty
from isoscope.control.penalty.cloud import Cloud
from isoscope.control.penalty.fused import UNDEFINED, Outcome
from isoscope.control.penalty.hidden import Layers
from isoscope.control.penalty.schedule import Factor
from isoscope.control.world import Join


@dataclass(frozen=True)
class CosineScore:
    """Mean cosine of two different rows, or of two rows of different documents."""

    across: bool = False
    squared: bool = False  # divide by n^2, as CosReg was published

    def __call__(self, rows: Tensor, cloud: Cloud, join: Join) -> Outcome:
        """Return the outcome for a cloud."""
        lengths = torch.linalg.vector_norm(rows, dim=1)
        inverse = torch.where(lengths > 0, 1 / lengths, 0.0)
        units = rows * inverse[:, None]
        there = inverse > 0
        own, pairs, apart = self._own(units, there, cloud)
        sums = rows.new_tensor([float(there.sum()), own, pairs])
        total = join.sum(torch.cat([units.sum(dim=0), sums]))
        count, own, pairs = total[-3:].double().tolist()
        total = total[:-3]
        least = count * count - pairs
        value = float(total @ total) - own
        if not least > 0 or not abs(value) <= count * count * 1.001:  # NaN fails it too
            return UNDEFINED
        over = count * count if self.squared else least

        def slope(factor: float) -> Tensor:
            pull = total if apart is None else total - apart
            along = (units * pull).sum(dim=1, keepdim=True)
            return (pull - along * units).mul_(inverse[:, None] * (2 * factor / over))

        return Outcome(value / over, slope)

    def _own(
        self, units: Tensor, there: Tensor, cloud: Cloud
    ) -> tuple[float, float, Tensor | None]:
        """Return what pairs within a document sum to, their number, and each row's part."""
        if not self.across or cloud.independent:
            own = float(there.sum())
            return own, own, None
        if not len(units):
            return 0.0, 0.0, torch.zeros_like(units)
        size = int(cloud.documents.max()) + 1
        sums = units.new_zeros(size, units.shape[1]).index_add_(0, cloud.documents, units)
        rows = torch.bincount(cloud.documents[there], minlength=size)
        pairs = float(rows.double().square().sum())
        return float(sums.square().sum()), pairs, sums[cloud.documents]


class MeanCosine(Penalty):
    """Adds weight * mean cosine to the loss: linear, each layer by itself, their mean.

    It pulls the common mean vector towards zero and leaves the shape of the cloud about
    its mean nearly alone. With `across`, pairs of rows of one sequence are left out, so that
    a sequence may go on resembling itself (the measure `mean-cosine-cross`).

    >>> import torch
    >>> penalty = MeanCosine(weight=2.0)
    >>> round(penalty(torch.tensor([[1.0, 0.0], [1.0, 1.0]])).item(), 3)
    1.414
    """

    def __init__(
        self,
        weight: float = 1.0,
        layers: Layers = "all",
        rows: int | None = 2048,
        *,
        across: bool = False,
        per_layer: bool = True,
        warmup: int = 0,
        schedule: Factor | None = None,
        accumulate: int = 1,
        seed: int = 0,
        join: bool = True,
    ) -> None:
        super().__init__(
            weight,
            layers,
            rows,
            per_layer=per_layer,
            warmup=warmup,
            schedule=schedule,
            accumulate=accumulate,
            seed=seed,
            join=join,
        )
        self.across = across

    def _score(self, number: int) -> CosineScore:
        return CosineScore(across=self.across)
