"""Rows cut into pieces of one length, so that one product sums all of them."""

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate.membership import Cells
from isoscope.dataclass import dataclass
from isoscope.types import Array

PIECE = 512  # rows summed at once where no document ends before
_SQUARED = 256  # rows squared at once, so that they stay in the cache
_CROWDED = 4  # pieces of a cell from which its rows are summed by themselves
_CALL = 16  # rows whose sums cost what a piece costs by itself


@dataclass(frozen=True)
class RowPieces:
    """Rows sorted by cell and cut into pieces of one length, so that one product sums them.

    No piece has rows of two documents, except where every row is its own document. What
    a piece lacks is filled up with its first row, to be taken out again as `blank`.
    """

    index: Tensor  # (pieces * length,) rows of the flattened tensor
    length: int
    taken: Array  # (n,) where among them the sorted rows are
    blank: Tensor  # where among them nothing is
    first: Array  # (units,) the first piece of each document, or cell of lone rows
    starts: Array  # (units,) its first row among the sorted ones
    by_cell: Tensor  # (cells, pieces) 1 where a piece is of a cell
    first_of_cell: Array  # (cells,) the first piece of each
    half: int  # pieces before this one are of half 0

    @classmethod
    def split(cls, index: Tensor, cells: Cells, starts: Array) -> "RowPieces":
        """Cut the units that start there, documents or cells, and pad the last of each."""
        sizes = np.diff(starts)  # (units,) rows of each
        length = _length(sizes)
        number = -(-sizes // length)  # (units,) pieces of each
        first = np.cumsum(number) - number
        # Where each of the n sorted rows goes among pieces * length places.
        within = np.arange(len(index)) - np.repeat(starts[:-1], sizes)  # (n,) in its unit
        taken = np.repeat(first * length, sizes) + within  # (n,)
        where = np.full(int(number.sum()) * length, -1)  # (pieces * length,)
        where[taken] = cells.order
        # Places that are left over repeat the first row of their piece.
        blank = np.flatnonzero(where < 0)
        where[blank] = where[blank // length * length]
        # Which cell a piece belongs to.
        cell = np.searchsorted(cells.starts, starts[:-1], side="right") - 1  # (units,)
        cell_of_piece = np.repeat(cell, number)  # (pieces,)
        member = np.arange(len(cells.keys))[:, None] == cell_of_piece  # (cells, pieces)
        device = index.device
        return cls(
            index[torch.from_numpy(where).to(device)],
            length,
            taken,
            torch.from_numpy(blank).to(device),
            first,
            starts[:-1],
            torch.from_numpy(member.astype(np.float32)).to(device),
            np.searchsorted(cell_of_piece, np.arange(len(cells.keys))),
            int(number[: np.searchsorted(starts, cells.split)].sum()),
        )

    def sum_pieces(self, side: Tensor, rows: Tensor) -> Tensor:
        """Return the rows of each piece summed with every weight, (pieces, weights, d)."""
        shape = (-1, self.length)
        weights = side.view(*shape, side.shape[1])  # (pieces, length, weights)
        parts = rows.view(*shape, rows.shape[1])  # (pieces, length, d)
        return torch.bmm(weights.transpose(1, 2), parts)

    @staticmethod
    def sum_squares(weights: Tensor, rows: Tensor) -> Tensor:
        """Return the weighted sum of the squared numbers of all rows, (d,), some at a time."""
        total = rows.new_zeros(rows.shape[1])
        room = rows.new_empty((min(_SQUARED, len(rows)), rows.shape[1]))
        for some, weight in zip(rows.split(_SQUARED), weights.split(_SQUARED), strict=True):
            total.addmv_(torch.square(some, out=room[: len(some)]).T, weight)
        return total

    def sum_both(self, side: Tensor, rows: Tensor, own: int) -> tuple[Tensor, Tensor]:
        """Return sums with the first `own` weights by piece, and with the others by cell.

        One product makes both; where documents are many and short, its sums by piece would
        be larger than the rows.
        """
        if len(self.index) < _CROWDED * self.length * len(self.by_cell):
            every = self.sum_pieces(side, rows)
            return every[:, :own], self.into_cells(every[:, own:])
        ends = [*self.first_of_cell[1:].tolist(), len(self.index) // self.length]
        found = rows.new_empty((len(ends), side.shape[1] - own, rows.shape[1]))
        start = 0
        for cell, end in enumerate(ends):
            part = slice(start * self.length, end * self.length)
            torch.mm(side[part, own:].T, rows[part], out=found[cell])
            start = end
        return self.sum_pieces(side[:, :own].contiguous(), rows), found

    def into_cells(self, summed: Tensor) -> Tensor:
        """Return sums of pieces, (pieces, weights, d), added up to those of cells."""
        shape = (len(self.by_cell), *summed.shape[1:])
        return (self.by_cell.to(summed.dtype) @ summed.flatten(1)).view(shape)

    def into_units(self, summed: Array) -> Array:
        """Return sums of pieces added up to those of documents, or of cells of lone rows."""
        if len(self.first) == len(summed):
            return summed
        return np.add.reduceat(summed, self.first, axis=0)


def _length(sizes: Array) -> int:
    """Return the length of pieces that costs least: fewer pieces against fewer blanks."""
    longest = int(sizes.max(initial=1))
    tried = {longest, *(2**k for k in range(1, 10) if 2**k < longest)}
    tried = {each for each in tried if each <= PIECE} or {PIECE}
    return min(tried, key=lambda each: int((-(-sizes // each)).sum()) * (each + _CALL))
