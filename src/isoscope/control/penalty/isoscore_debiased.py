"""Debiased IsoScore as a training penalty: the differentiable twin of the measure."""

import warnings
from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor

from isoscope.control.penalty.penalty import UNDEFINED, Penalty, Score, ScoreResult
from isoscope.control.penalty.product import Centred, Shape, scale_and_shift, scatter_of
from isoscope.control.penalty.row_selection import RealTokens, RowSelection
from isoscope.control.processes import World

LEAST = 8  # rows below which the estimator is noise
ROUNDING = 64  # units of rounding in sums of rows; below, a difference of sums says nothing


def debiased_score(rows: Tensor, selection: RowSelection, world: World) -> ScoreResult:
    """Return 1 - debiased IsoScore, clamped at 0 where the estimate is above isotropic.

    Rows in documents: products across two halves of the documents. Independent rows:
    Himeno and Yamada's unbiased sums.
    """
    if rows.shape[1] < 2:
        return UNDEFINED
    if len(selection.sizes) == 1:
        return _of_rows(Centred.of(rows, world, owned=selection.is_copy), world)
    a, b = (Centred.of(half, world, owned=True) for half in rows.split(selection.sizes))
    return _of_halves(a, b, world)


def _of_halves(a: Centred, b: Centred, world: World) -> ScoreResult:
    """With W = C / tr C of each half:  PR = 1 / <W_a, W_b>."""
    if min(a.count, b.count) < 2 or a.count + b.count < LEAST or not (a.spread and b.spread):
        return UNDEFINED
    d = a.rows.shape[1]
    shared, across = _across(a, b, world)
    if not shared * d > 1:  # clamped at perfect isotropy; also where rounding left nothing
        return ScoreResult(0.0)
    ratio = 1 / shared

    def slope(factor: float) -> Tensor:
        """Of 1 - score: dPR / dX_a = 2 PR / tr M_a (Y_a - PR Y_a W_b), and so for b."""
        of_a, of_b = (2 * factor * ratio / (half.trace * (d - 1)) for half in (a, b))
        return torch.cat([across[0](of_a, ratio), across[1](of_b, ratio)])

    return ScoreResult(1 - (ratio - 1) / (d - 1), slope)


Across = Callable[[float, float], Tensor]  # factor, ratio: factor (ratio Y W - Y)


def _across(a: Centred, b: Centred, world: World) -> tuple[float, tuple[Across, Across]]:
    """Return <W_a, W_b>, and what makes the slopes by the rows of each half."""
    d, n, m = a.rows.shape[1], len(a.rows), len(b.rows)
    if world.size == 1 and 3 * n * m < 2 * (n + m) * d:
        # Y_a Y_b' is smaller than two scatters: |Y_a Y_b'|^2 = <M_a, M_b>
        dots = (a.rows @ b.rows.T).div_(sqrt(a.trace) * sqrt(b.trace))
        scale = sqrt(a.trace / b.trace)

        def by_a(factor: float, ratio: float) -> Tensor:
            return torch.addmm(a.rows, dots, b.rows, beta=-factor, alpha=factor * ratio * scale)

        def by_b(factor: float, ratio: float) -> Tensor:
            return torch.addmm(
                b.rows, dots.T, a.rows, beta=-factor, alpha=factor * ratio / scale
            )

        return float(dots.square().sum()), (by_a, by_b)
    first = scatter_of(a.rows, world).div_(a.trace)
    second = scatter_of(b.rows, world).div_(b.trace)
    return float((first * second).sum()), (
        lambda factor, ratio: a.rows @ scale_and_shift(second, factor * ratio, -factor),
        lambda factor, ratio: b.rows @ scale_and_shift(first, factor * ratio, -factor),
    )


def _of_rows(about: Centred, world: World) -> ScoreResult:
    """Himeno and Yamada's ratio A / B, both over (tr C)^2.

    With p = |W|^2 and s = sum of (|y|^2 / tr M)^2:
        A = 2 p + n^2 - 3 n + 1 - n (n-1) s,   B = (n-1)(n-2) p + 1 - n (n-1) s
    """
    n, rows, d = about.count, about.rows, about.rows.shape[1]
    if n < LEAST or not about.spread:
        return UNDEFINED
    shape = Shape.of(about, world)
    p = shape.concentration
    share = rows.square().sum(dim=1).div_(about.trace)  # (k,), sums to 1
    sums = world.sum(torch.cat([share @ rows, share.square().sum()[None]]))
    pull, s = sums[:-1], float(sums[-1])
    spread = 2 * p + n * n - 3 * n + 1 - n * (n - 1) * s
    squared = (n - 1) * (n - 2) * p + 1 - n * (n - 1) * s
    # One row far from all others leaves differences of large numbers, which is rounding.
    rounding = ROUNDING * torch.finfo(rows.dtype).eps * n * n
    if not spread > rounding * s:
        return UNDEFINED
    if not squared * d > spread:  # clamped at perfect isotropy
        return ScoreResult(0.0)
    if not squared > rounding * (p + s):
        return UNDEFINED
    ratio = spread / squared
    scale = -4 / (about.trace * squared * (d - 1))
    own = n * (n - 1) * (1 - ratio)

    def slope(factor: float) -> Tensor:
        outer = 2 - ratio * (n - 1) * (n - 2)
        less = -(n * n - 3 * n + 1 - ratio) / outer
        found = shape.times(rows, factor * scale * outer, less)
        found.addcmul_(rows, share[:, None], value=-factor * scale * own)
        return found.add_(pull, alpha=factor * scale * own / n)

    return ScoreResult(1 - (ratio - 1) / (d - 1), slope)


class DebiasedIsotropy(Penalty):
    """Adds weight * (1 - debiased IsoScore) to the loss; needs no shrinkage matrix.

    IsoScore of a batch is too low by an amount that goes with the number of sequences,
    because tokens of one sequence resemble each other. Here the sequences are dealt to two
    halves, anew at every call, and only products across the halves count. Rows without
    sequences, a tensor (n, d), are taken as independent.

    The estimator is not bounded; where the estimate is above isotropic the penalty is 0
    and so is its gradient. A batch of one sequence, or of fewer than 8 rows, gives 0.

    >>> import torch
    >>> penalty = DebiasedIsotropy(weight=1.0)
    >>> cloud = torch.randn(64, 4, generator=torch.manual_seed(0)) * torch.tensor([3, 1, 1, 1])
    >>> round(penalty(cloud).item(), 2)
    0.68
    """

    lacks = True
    _warned = False

    def _score(self, number: int) -> Score:
        return debiased_score

    def _in_halves(self, tokens: RealTokens) -> bool:
        if tokens.total_documents == 1 and tokens.total >= LEAST and not self._warned:
            self._warned = True
            warnings.warn(
                "DebiasedIsotropy compares sequences, and this batch has one: the penalty is "
                "zero; give batches of two or more sequences, or documents= where packed",
                stacklevel=5,
            )
        return not tokens.independent
