"""The torch twin of a block: the same sums, made on the device where the tensor lives.

NumPy inside a hook doubled the time of a forward pass, because two thread pools fought for
the cores; here everything of the size of the rows stays in torch, and only sums leave it.
Rows are gathered once, in the order of their cells; documents are then summed one after
the other, small enough to stay in the cache while all sums of them are made.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate.block import (
    LEAST_SQUARE,
    WIDE_PART,
    Block,
    directions,
    representable,
    sketch_rank,
)
from isoscope.accumulate.membership import Membership
from isoscope.accumulate.sums import (
    CellSums,
    DocumentSquares,
    DocumentSums,
    SinkRows,
    lazy,
)
from isoscope.capture.row_pieces import RowPieces
from isoscope.dataclass import dataclass
from isoscope.types import Array

_SAMPLE = 64
_PANEL = 96  # columns of a symmetric product that are computed at once
_NEAR = 256  # rows in float64 at once, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class TensorLayout(Membership):
    """Which rows of a tensor are meant, and the document and position of each.

    The same for every site of a batch that has the same rows in it, and made once.
    """

    index: Tensor  # (n,) rows of the flattened tensor; documents consecutive

    def alone(self) -> "TensorLayout":
        """Return the layout of the chosen rows once they are a tensor of their own."""
        return replace(self, index=torch.arange(len(self), device=self.index.device))

    @classmethod
    def join(cls, parts: Sequence["TensorLayout"]) -> "TensorLayout":
        """Return the layout of rows of several tensors, one below the other."""
        first = parts[0]
        return cls(
            np.concatenate([each.documents for each in parts]),
            np.concatenate([each.positions for each in parts]),
            torch.arange(sum(map(len, parts)), device=first.index.device),
            independent=first.independent,
            folded=first.folded,
            tokens=_join([each.tokens for each in parts]),
            frequency=_join([each.frequency for each in parts]),
        )

    @lazy
    def pieces(self) -> RowPieces:
        """The rows in the order of their cells, cut into pieces of one length."""
        starts = self.cells.starts
        if not self.independent:
            ordered = self.documents[self.cells.order]
            starts = np.r_[0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered)]
        return RowPieces.split(self.index, self.cells, starts)

    @lazy
    def places_by_band(self) -> tuple[Tensor, Tensor]:
        """Where among the pieces the rows of each pair of bands are, and where pairs begin."""
        places = self.pieces.taken[self.band_cells.order]
        found = (torch.from_numpy(each) for each in (places, self.band_cells.starts))
        first, second = (each.to(self.index.device) for each in found)
        return first, second


def _join(parts: Sequence[Array | None]) -> Array | None:
    """Return arrays one after the other; None where there is none."""
    there = [each for each in parts if each is not None]
    return np.concatenate(there) if there else None


class TensorBlock(Block):
    """A block whose rows are a tensor on any device."""

    def __init__(
        self,
        tensor: Tensor,
        layout: TensorLayout,
        *,
        origin: Array | None = None,
        norms: Tensor | None = None,
        sketched: bool = True,
        precise: bool = False,
        scratch: Tensor | None = None,
        sinks: SinkRows | None = None,
    ) -> None:
        super().__init__(
            layout, int(tensor.shape[1]), origin=origin, sketched=sketched, sinks=sinks
        )
        self.tensor = tensor  # (rows of the batch, d), of which the layout's are meant
        self.layout = layout
        self.norms = norms  # (rows of the batch,), where they are known
        self.precise = precise  # whether sums are made in float64, whatever the rows are in
        self._scratch = scratch  # memory that the next block may write over

    @property
    def rows(self) -> "TensorRows":
        """The rows, of which only those chosen leave the device."""
        return TensorRows(self.tensor, self.layout.index)

    def about(self, centre: Array) -> "TensorBlock":
        """Return the block with the centre taken from every row."""
        near = torch.from_numpy(centre).to(self.tensor.device)
        moved = (self._wide(self.tensor).double() - near).to(self._wide(self.tensor).dtype)
        return TensorBlock(moved, self.layout, sketched=False)

    @staticmethod
    def _wide(tensor: Tensor) -> Tensor:
        return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()

    @lazy
    def origin(self) -> Array:
        """A point near the mean; the one offered, if it will do."""
        step = max(1, len(self) // _SAMPLE)
        sample = self.tensor[self.layout.index[::step][:_SAMPLE]].double().cpu().numpy()
        offered = self._near_enough(sample)
        if offered is not None:
            return offered
        near = np.median(sample, axis=0).astype(np.float32).astype(np.float64)
        return self._or_offered(sample, near)

    @lazy
    def scatters(self) -> tuple[Array, Array]:
        """Sum of z z' over the rows of each half, (d, d)."""
        _ = self._totals
        cut, rows = self.layout.pieces.half * self.layout.pieces.length, self._gathered
        return symmetric_product(rows[:cut]).cpu().numpy(), symmetric_product(
            rows[cut:]
        ).cpu().numpy()

    def wide_sums(self, axes: Array | None = None) -> list[tuple[Array, Array]]:
        """Return for each half the sums of z and of z (z'A), (d,) and (d, k), in float64."""
        _ = self._totals
        cut = self.layout.pieces.half * self.layout.pieces.length
        onto = None if axes is None else torch.from_numpy(axes).to(self.tensor.device)
        sums = (
            wide_products(rows) if onto is None else wide_sums_along(rows, onto)
            for rows in (self._gathered[:cut], self._gathered[cut:])
        )
        return [(total.cpu().numpy(), product.cpu().numpy()) for total, product in sums]

    @lazy
    def _totals(self) -> tuple[CellSums, Array, Array]:
        """The sums, and squared norms and inverse norms of the sorted rows."""
        rows = self._gather()
        summed = self._sum_of(rows.double() if self.precise else rows)
        if self._gathered.dtype == torch.float32 and not self._is_precise(*summed[:2]):
            rows = self.tensor.index_select(0, self.layout.pieces.index).double()
            summed = self._sum_of(rows)
        return summed

    def _gather(self) -> Tensor:
        """Return the rows in the order of the pieces, as a copy to be written to."""
        index, spare = self.layout.pieces.index, self._scratch
        size = len(index) * self.width
        if spare is None or spare.dtype != self.tensor.dtype or spare.numel() < size:
            return self._wide(self.tensor.index_select(0, index))
        room = spare[:size].view(len(index), self.width)
        return self._wide(torch.index_select(self.tensor, 0, index, out=room))

    def _is_precise(self, sums: CellSums, squares: Array) -> bool:
        """Whether float32 was enough."""
        if not representable(sums, squares):
            return False
        low = self.cells.order[squares < LEAST_SQUARE]
        where = torch.from_numpy(low).to(self.tensor.device)
        return not bool(self.tensor[self.layout.index[where]].any())

    def _sum_of(self, rows: Tensor) -> tuple[CellSums, Array, Array]:
        """Sum up; the rows become rows minus the origin, and blanks zero."""
        # m = pieces * length places, of which blank ones count for nothing.
        pieces, blank = self.layout.pieces, self.layout.pieces.blank
        norms = self._norms(rows)  # (m,)
        inverse = torch.where(norms > 0, 1 / norms, torch.zeros_like(norms))
        inverse.index_fill_(0, blank, 0)
        # z = x - origin, written over x.
        shift = self.origin.any()
        if shift:
            rows = rows.sub_(torch.from_numpy(self.origin).to(rows))
        rows.index_fill_(0, blank, 0)
        lengths = (torch.linalg.vector_norm(rows, dim=1) if shift else norms).square()
        lengths.index_fill_(0, blank, 0)
        self._gathered = rows
        # Sums by piece, (pieces, 3, d): of z, |z|^2 z and z / |x|; then by cell.
        units, sketch, energy = self._by_piece(rows, lengths, inverse)
        if shift:  # u = (z + origin) / |x|
            units, energy = self._move_back(units, energy, inverse.double().cpu().numpy())
        self._pieces = units
        by_cell = np.add.reduceat(units, pieces.first_of_cell, axis=0)  # (cells, 3, d)
        cells, starts = self.cells, self.cells.starts[:-1]
        taken = pieces.taken
        # Back to the n sorted rows, in float64.
        wide = lengths.double().cpu().numpy()[taken]
        seen = inverse.cpu().numpy()[taken]
        sums = CellSums(
            count=np.diff(cells.starts).astype(np.float64),
            nonzero=np.add.reduceat((seen > 0).astype(np.float64), starts),
            total=by_cell[:, 0],
            trace=np.add.reduceat(wide, starts),
            cubic=by_cell[:, 1],
            quartic=np.add.reduceat(wide * wide, starts),
            units=by_cell[:, 2],
            energy=energy,
            sketch=sketch,
        )
        return sums, norms.double().cpu().numpy()[taken] ** 2, seen

    def _norms(self, rows: Tensor) -> Tensor:
        if self.norms is None or self.norms.dtype != rows.dtype:
            return torch.linalg.vector_norm(rows, dim=1)
        return self.norms.index_select(0, self.layout.pieces.index)

    def _by_piece(
        self, rows: Tensor, lengths: Tensor, inverse: Tensor
    ) -> tuple[Array, Array, Array]:
        """Return sums of z, |z|^2 z and z/|x| of each piece, sketches of cells, energies."""
        pieces = self.layout.pieces
        # what rows are weighted with; the last are of the sketch
        rank = sketch_rank(self.width) if self.sketched and not self.independent else 0
        side = rows.new_empty((len(rows), 3 + rank))
        side[:, 0] = 1
        side[:, 1] = lengths
        side[:, 2] = inverse
        if rank:
            torch.mm(rows, torch.from_numpy(directions(self.width)).to(rows), out=side[:, 3:])
        by_piece, summed = pieces.sum_both(side, rows, 3)
        sketch = summed.cpu().numpy()  # (cells, rank, d)
        energy = pieces.sum_squares(inverse.square(), rows)
        first = by_piece.double().cpu().numpy()  # (pieces, 3, d)
        if self.precise and self.tensor.dtype != torch.float64:
            sketch = sketch.astype(np.float32)  # is kept in the precision of the rows
        return first, sketch, energy.double().cpu().numpy()

    def _move_back(self, pieces: Array, energy: Array, inverse: Array) -> tuple[Array, Array]:
        """Return sums of x/|x| and of x^2/|x|^2 from those of z = x - origin."""
        origin, squared = self.origin, inverse * inverse
        weight = inverse.reshape(len(pieces), -1).sum(axis=1)
        # Sums of z / |x|^2 are not kept by piece; one product over all rows gives them.
        pull = torch.from_numpy(squared).to(self._gathered) @ self._gathered
        energy = energy + 2 * origin * pull.double().cpu().numpy()
        energy += origin * origin * squared.sum()
        pieces[:, 2] += weight[:, None] * origin
        return pieces, energy

    @lazy
    def by_document(self) -> DocumentSums:
        """The sums of each document, in the order of the cells."""
        summed, pieces = self._totals, self.layout.pieces
        starts = pieces.starts
        rows = np.diff(np.r_[starts, len(self)]).astype(np.float64)
        total = pieces.into_units(self._pieces[:, 0])
        return DocumentSums(
            keys=self.documents[self.cells.order][starts],
            units=pieces.into_units(self._pieces[:, 2]),
            total=total + rows[:, None] * self.origin,
            nonzero=np.add.reduceat((summed[2] > 0).astype(np.float64), starts),
            rows=rows,
        )

    def unit_sums(self, chosen: Array, labels: Array, number: int) -> tuple[Array, Array]:
        """Return the sums of the unit vectors of chosen rows under each label, and how many.

        Rows are fetched, divided by their norms and summed in one go, label by label.
        """
        order = np.argsort(labels, kind="stable")
        rows, index, norms = self._select(chosen[order])
        inverse = torch.where(norms > 0, 1 / norms, torch.zeros_like(norms))
        starts = np.searchsorted(labels[order], np.arange(number))
        sums = torch.nn.functional.embedding_bag(
            index,
            rows,
            torch.from_numpy(starts).to(index),
            mode="sum",
            per_sample_weights=inverse,
        )
        there = (norms > 0).cpu().numpy()
        nonzero = np.bincount(labels[order], there, number)
        return sums.double().cpu().numpy(), nonzero

    def _select(self, chosen: Array) -> tuple[Tensor, Tensor, Tensor]:
        """Return a tensor, which rows of it were chosen, and the norms of these."""
        _ = self._totals
        index = self.layout.index[torch.from_numpy(chosen).to(self.layout.index)]
        enough = self._gathered.dtype  # float64 where float32 would have lost digits
        if self.tensor.dtype != enough:
            rows = self.tensor.index_select(0, index).to(enough)
            here = torch.arange(len(rows), device=rows.device)
            return rows, here, torch.linalg.vector_norm(rows, dim=1)
        if self.norms is None or self.norms.dtype != enough:
            norms = torch.linalg.vector_norm(self.tensor.index_select(0, index), dim=1)
        else:
            norms = self.norms.index_select(0, index)
        return self.tensor, index, norms

    @lazy
    def by_band_cell(self) -> tuple[Array, Array]:
        """The sums of unit vectors of each pair of bands of each cell, and counts.

        Rows of a pair are summed one after the other, so that it costs the same however many
        pairs there are; as columns of the product for sketches, 45 pairs cost as much again.
        """
        bands, rows = self.layout.band_cells, self._gathered_rows
        inverse = self._totals[2][bands.order]
        places, starts = self.layout.places_by_band
        sums = torch.nn.functional.embedding_bag(
            places,
            rows,
            starts,
            mode="sum",
            per_sample_weights=torch.from_numpy(inverse).to(rows),
        )
        units = sums.cpu().numpy()  # of z / |x|
        if self.origin.any():
            weights = np.add.reduceat(inverse.astype(np.float64), bands.starts)
            units = units + weights[:, None] * self.origin
        return units, np.add.reduceat((inverse > 0).astype(np.float64), bands.starts)

    @property
    def _gathered_rows(self) -> Tensor:
        """The rows minus the origin, in the order of the pieces."""
        _ = self._totals
        return self._gathered

    def _square_documents(self) -> DocumentSquares:
        seen, cells = self.by_document, self.cells
        where = np.searchsorted(cells.starts, self.layout.pieces.starts, side="right") - 1
        squares = (
            np.vecdot(seen.units, seen.units),
            seen.nonzero**2,
            np.vecdot(seen.total, seen.total),
            seen.rows**2,
        )
        return DocumentSquares(*(np.bincount(where, each, len(cells.keys)) for each in squares))


def symmetric_product(rows: Tensor) -> Tensor:
    """Return X'X, (d, d), of rows X (n, d); what lies above the diagonal is mirrored."""
    width = rows.shape[1]
    if width < 2 * _PANEL:
        return rows.T @ rows
    out = rows.new_empty((width, width))
    for start in range(0, width, _PANEL):
        end = start + _PANEL
        torch.mm(rows[:, start:].T, rows[:, start:end], out=out[start:, start:end])
        out[start:end, end:] = out[end:, start:end].T
    return out


def wide_products(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of rows z and of z z' in float64, (d,) and (d, d)."""
    width = rows.shape[1]
    total = rows.new_zeros(width, dtype=torch.float64)
    product = rows.new_zeros((width, width), dtype=torch.float64)
    for some in rows.split(WIDE_PART):
        part = some.double()
        total += part.sum(dim=0)
        product += symmetric_product(part)
    return total, product


def wide_sums_along(rows: Tensor, axes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of rows z and of z (z'A) in float64, (d,) and (d, k).

    A column of ones beside the products makes the sum of the rows of the same product. Few
    rows at a time, in room that is used again, take an eighth of the time of many.
    """
    k, most = axes.shape[1], min(_NEAR, len(rows))
    room = rows.new_empty((most, rows.shape[1]), dtype=torch.float64)
    weights = rows.new_ones((most, k + 1), dtype=torch.float64)
    found = rows.new_zeros((k + 1, rows.shape[1]), dtype=torch.float64)
    for some in rows.split(_NEAR):
        part, weight = room[: len(some)].copy_(some), weights[: len(some)]
        torch.mm(part, axes, out=weight[:, :k])
        found.addmm_(weight.T, part)
    return found[k], found[:k].T


class TensorRows:
    """Rows of a tensor that come to NumPy only when they are chosen."""

    def __init__(self, tensor: Tensor, index: Tensor) -> None:
        self.tensor, self.index = tensor, index
        self.dtype = np.dtype(np.float64 if tensor.dtype == torch.float64 else np.float32)
        self.shape = (len(index), tensor.shape[1])

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, chosen: Array) -> Array:
        where = torch.from_numpy(np.asarray(chosen)).to(self.index.device)
        rows = self.tensor.index_select(0, self.index[where])
        return (rows if self.dtype == np.float64 else rows.float()).cpu().numpy()

    def columns(self, step: int) -> Array:
        """Return every `step`-th column of all rows, counted from the last one."""
        some = self.tensor[:, (self.shape[1] - 1) % step :: step]
        return some[self.index].float().contiguous().cpu().numpy()
