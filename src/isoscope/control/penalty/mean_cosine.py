"""Mean cosine as a training penalty: the differentiable twin of measures/mean_cosine.py."""

from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from isoscope.control.penalty.penalty import UNDEFINED, Options, Penalty, Score, ScoreResult
from isoscope.control.penalty.row_selection import RowSelection
from isoscope.control.processes import World


def cosine_score(
    rows: Tensor,
    selection: RowSelection,
    world: World,
    *,
    across: bool = False,
    squared: bool = False,
) -> ScoreResult:
    """Return the mean cosine of two different rows, or of rows of different documents.

    `squared` divides by n^2, as CosReg was published.
    """
    lengths = torch.linalg.vector_norm(rows, dim=1)
    inverse = torch.where(lengths > 0, 1 / lengths, 0.0)
    units = rows * inverse[:, None]
    there = inverse > 0
    apart = across and not selection.independent
    own, pairs, pulls = _within_documents(units, there, selection.documents, apart)
    sums = rows.new_tensor([float(there.sum()), own, pairs])
    total = world.sum(torch.cat([units.sum(dim=0), sums]))
    count, own, pairs = total[-3:].double().tolist()
    total = total[:-3]
    least = count * count - pairs
    value = float(total @ total) - own
    if not least > 0 or not abs(value) <= count * count * 1.001:  # NaN fails it too
        return UNDEFINED
    over = count * count if squared else least

    def slope(factor: float) -> Tensor:
        pull = total if pulls is None else total - pulls
        along = (units * pull).sum(dim=1, keepdim=True)
        return (pull - along * units).mul_(inverse[:, None] * (2 * factor / over))

    return ScoreResult(value / over, slope)


def _within_documents(
    units: Tensor, there: Tensor, documents: Tensor, apart: bool
) -> tuple[float, float, Tensor | None]:
    """Return what pairs within a document sum to, their number, and each row's part."""
    if not apart:  # every row is its own document
        own = float(there.sum())
        return own, own, None
    if not len(units):
        return 0.0, 0.0, torch.zeros_like(units)
    size = int(documents.max()) + 1
    sums = units.new_zeros(size, units.shape[1]).index_add_(0, documents, units)
    pairs = float(torch.bincount(documents[there], minlength=size).double().square().sum())
    return float(sums.square().sum()), pairs, sums[documents]


class MeanCosine(Penalty):
    """Adds weight * mean cosine to the loss: linear, each layer by itself, their mean.

    It pulls the common mean vector towards zero and leaves the shape of the cloud about
    its mean nearly alone. With `across`, pairs of rows of one sequence are excluded, so that
    a sequence may go on resembling itself (the measure `mean-cosine-cross`).

    >>> import torch
    >>> penalty = MeanCosine(weight=2.0)
    >>> round(penalty(torch.tensor([[1.0, 0.0], [1.0, 1.0]])).item(), 3)
    1.414
    """

    default_per_layer = True

    def __init__(
        self, weight: float = 1.0, *, across: bool = False, **options: Unpack[Options]
    ) -> None:
        super().__init__(weight, **options)
        self.across = across

    def _score(self, number: int) -> Score:
        return partial(cosine_score, across=self.across)


class CosReg(Penalty):
    """Adds weight * mean cosine of different rows of the last layer to the loss.

    I-STAR compares itself with it. The released code divides the sum of the n (n - 1)
    cosines by n^2 and includes padding; `as_published` divides so too, padding is never
    counted. It moves the mean of the rows and leaves their covariance nearly alone: a low
    mean cosine is not isotropy.

    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> round(CosReg()(rows).item(), 3), round(CosReg(as_published=True)(rows).item(), 3)
    (0.707, 0.354)
    """

    default_layers = "last"

    def __init__(
        self, weight: float = 1.0, *, as_published: bool = False, **options: Unpack[Options]
    ) -> None:
        super().__init__(weight, **options)
        self.as_published = as_published

    def _score(self, number: int) -> Score:
        return partial(cosine_score, squared=self.as_published)
