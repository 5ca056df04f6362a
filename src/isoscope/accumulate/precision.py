"""How products of float32 rows are summed so that small eigenvalues keep their digits.

Rounding moves entry i, j of a float32 product by about 1e-8 of D_i D_j, with D_i^2 the sum of
squares of column i. Eigenvalues of the scatter S are therefore right to about 1e-8 / mu
wherever S > mu D^2 as matrices (Demmel and Veselic 1992). Columns of any size do no harm, but
directions in which columns nearly cancel have no digits left. These are summed in float64: on
their own while they are few, as the one that a layer norm takes away; else everything is.
"""

from collections.abc import Sequence

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.types import Array

LEAST = 1e-3  # mu: the share of D^2 that a direction needs to be summed in float32
_GROWTH = 4  # of a column's sum of squares, until directions are looked for again
_LINES = 64  # of a matrix that are worked on at once
_AT_ONCE = 96  # lines of a matrix that are eliminated at once
_FEW = 16  # at most a sixteenth of the directions are summed on their own

Sums = tuple[Array, Array]  # of z, (d,), and of z z', (d, d), over the rows z of a half
Counted = tuple[float, Array, Array]  # the number of rows, and their sums


class Precision:
    """Finds the directions of a stream of rows that need float64.

    They are looked for with the first block, and again when a column's sum of squares is four
    times what it was. In between S > mu D^2 / 4, whatever the rows are: S only grows.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._squares: Array | None = None  # (d,) sum of squares of each column: D^2
        self._checked: Array | None = None  # (d,) what it was at the last check
        self._wide = False  # whether all directions are summed in float64
        self._axes: Array | None = None  # (d, k) directions that are summed on their own
        self._duals: Array | None = None  # (d, k) axes.T @ duals is the identity
        # For each choice of axes: what float32 products missed of both halves, axes, duals.
        self._missed: list[tuple[Array, Array, Array]] = []  # (2, d, k), (d, k), (d, k)

    def sum_halves(self, block: Block, before: Sequence[Counted]) -> Sequence[Sums]:
        """Return the sums of each half of a block; `before` are those of all rows so far.

        What they miss along directions that are summed on their own is kept: `settle` adds it.
        """
        if not self._wide and block.scatters[0].dtype == np.float64:
            return list(zip(block.totals, block.scatters, strict=True))
        found = block.wide_sums() if self._wide else None
        scatters = block.scatters if found is None else [scatter for _, scatter in found]
        squares = np.add(*(np.diagonal(each).astype(np.float64) for each in scatters))
        self._squares = squares if self._squares is None else self._squares + squares
        self._rows += len(block)
        if self._checked is None or (self._squares > _GROWTH * self._checked).any():
            here = zip(block.half_rows, block.totals, scatters, strict=True)
            self._check([*before, *here], self._squares)
        if found is not None:
            return found
        if self._wide:
            return block.wide_sums()
        if self._axes is None:
            return list(zip(block.totals, block.scatters, strict=True))
        return self._sum_along(self._axes, block)

    def _check(self, parts: Sequence[Counted], squares: Array) -> None:
        """Find the directions in which the scatter has too little of the sums of squares."""
        self._checked = squares
        width = len(squares)
        if self._rows <= width:
            self._wide, self._axes = True, None
            return
        scale = np.sqrt(squares)
        there = np.where(scale > 0, scale, 1.0)
        scaled = filled = _scaled_scatter(parts, there)
        # Columns of zeros have no rounding either.
        scaled[np.diag_indices(width)] += np.where(scale > 0, 0.0, 1.0) - LEAST
        if self._axes is not None:  # what is summed on its own already is no trouble
            basis = np.linalg.qr(there[:, None] * self._axes)[0].astype(np.float32)
            filled = basis @ basis.T
            filled += scaled
        if _is_positive(filled):  # cheap: whether S > mu D^2
            self._wide = False
        else:
            values, vectors = np.linalg.eigh(scaled)
            low = vectors[:, values < 0].astype(np.float64)
            self._wide = low.shape[1] * _FEW > width
            self._axes = self._duals = None
            if not self._wide:
                self._axes, self._duals = low / there[:, None], low * there[:, None]
                nothing = np.zeros((2, *low.shape))
                self._missed.append((nothing, self._axes, self._duals))

    def _sum_along(self, axes: Array, block: Block) -> list[Sums]:
        """Return sums of a block, and keep what their scatters S miss: B - S A.

        B = S A is summed in float64. The same of all blocks adds up, so that the scatters of
        all rows are corrected once: a correction costs as much as a small block.
        """
        missed, found = self._missed[-1][0], list[Sums]()
        for half, (total, along) in enumerate(block.wide_sums(axes)):
            scatter = block.scatters[half]
            missed[half] += along - scatter.astype(np.float64) @ axes
            found.append((total, scatter))
        return found

    def settle(self, scatters: Sequence[Array]) -> None:
        """Make the scatters of both halves right along the axes A too, in their place.

        They become S + F V' + V F', V the duals: with G = B - S A what float32 products
        missed, F = G - V A'G / 2 leaves them as they are in all other directions.
        """
        for missed, axes, duals in self._missed:
            for scatter, gap in zip(scatters, missed, strict=True):
                if gap.any():
                    pull = gap - duals @ (axes.T @ gap) / 2
                    scatter += np.hstack([pull, duals]) @ np.hstack([duals, pull]).T
                    gap[:] = 0.0
        self._missed = self._missed[-1:] if self._axes is not None else []


def _is_positive(matrix: Array) -> bool:
    """Whether all eigenvalues of a symmetric matrix are above zero.

    By Cholesky's factors of some lines at a time, whose products are fast: the factor of the
    whole, which nobody needs, takes LAPACK three times as long.
    """
    rest = matrix.copy()
    while len(rest):
        try:
            factor = np.linalg.cholesky(rest[:_AT_ONCE, :_AT_ONCE])
        except np.linalg.LinAlgError:
            return False
        below = rest[_AT_ONCE:, :_AT_ONCE] @ np.linalg.inv(factor).T
        rest = rest[_AT_ONCE:, _AT_ONCE:]
        rest -= below @ below.T
    return True


def _scaled_scatter(parts: Sequence[Counted], scale: Array) -> Array:
    """Return the scatter of parts about their own means over the scale of columns, float32.

    A few lines at a time, because both lanes of a pass may be here with large matrices.
    """
    width = len(scale)
    out = np.empty((width, width), dtype=np.float32)
    for start in range(0, width, _LINES):
        lines = slice(start, start + _LINES)
        here = np.zeros((len(scale[lines]), width))
        for rows, total, scatter in parts:
            if rows:
                here += scatter[lines]
                here -= np.outer(total[lines] / rows, total)
        out[lines] = here / scale / scale[lines, None]
    return out
