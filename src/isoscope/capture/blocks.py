"""The torch twin of a block: the same sums, made on the device where the tensor lives.

NumPy inside a hook doubled the time of a forward pass, because two thread pools fought for
the cores; here everything of the size of the rows stays in torch, and only sums leave it.
"""

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate.block import Block, Sums, directions, sketch_rank
from isoscope.accumulate.lazy import lazy
from isoscope.types import Array

_SAMPLE = 64


class TensorBlock(Block):
    """A block whose rows are a tensor on any device."""

    def __init__(
        self,
        tensor: Tensor,
        documents: Array,
        positions: Array,
        *,
        origin: Array | None = None,
        sketched: bool = True,
    ) -> None:
        wide = tensor.dtype in (torch.float32, torch.float64)
        self.tensor = tensor if wide else tensor.float()  # (n, d)
        super().__init__(
            np.empty((0, tensor.shape[1]), dtype=np.float32),
            documents,
            positions,
            origin=origin,
            sketched=sketched,
        )

    def __len__(self) -> int:
        return len(self.tensor)

    @property
    def rows(self) -> "TensorRows":
        """The rows, of which only those asked for leave the device."""
        return TensorRows(self.tensor)

    @rows.setter
    def rows(self, _rows: Array) -> None:
        """Leave the tensor in its place."""

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return int(self.tensor.shape[1])

    def about(self, centre: Array) -> Block:
        """Return the block with the centre taken from every row."""
        moved = self.tensor.double() - torch.from_numpy(centre).to(self.tensor.device)
        return TensorBlock(moved.to(self.tensor.dtype), self.documents, self.positions)

    @lazy
    def origin(self) -> Array:
        """A point near the mean; the one offered, if it will do."""
        step = max(1, len(self) // _SAMPLE)
        sample = self.tensor[::step][:_SAMPLE].double().cpu().numpy()
        spread = np.var(sample, axis=0).sum()
        for offered in (self._origin, np.zeros(self.width)):
            if offered is not None:
                offset = sample.mean(axis=0) - offered
                if offset @ offset <= spread / 4:
                    return offered
        return np.median(sample, axis=0).astype(np.float32).astype(np.float64)

    @lazy
    def _shifted(self) -> Tensor:
        """The rows minus the origin, sorted by cell."""
        order = torch.from_numpy(self.cells.order).to(self.tensor.device)
        rows = self.tensor[order]
        if self.origin.any():
            rows -= torch.from_numpy(self.origin).to(rows)
        return rows

    @lazy
    def scatters(self) -> tuple[Array, Array]:
        """Sum of z z' over the rows of each half, (d, d)."""
        cut, rows = self.cells.split, self._shifted
        first, second = rows[:cut], rows[cut:]
        return (first.T @ first).cpu().numpy(), (second.T @ second).cpu().numpy()

    @lazy
    def _summed(self) -> tuple[Sums, Array, Array]:
        """The sums, and squared norms and inverse norms of the sorted rows."""
        cells, rows = self.cells, self._shifted
        device, dtype, count = rows.device, rows.dtype, len(cells.keys)
        sizes = np.diff(cells.starts)
        cell = torch.from_numpy(np.repeat(np.arange(count), sizes)).to(device)
        order = torch.from_numpy(cells.order).to(device)
        original = self.tensor[order] if self.origin.any() else rows
        squares = original.square().sum(dim=1)
        inverse = torch.where(squares > 0, squares.rsqrt(), torch.zeros_like(squares))
        units = original * inverse[:, None]
        lengths = rows.square().sum(dim=1)

        def by_cell(values: Tensor) -> Array:
            shape = (count, *values.shape[1:])
            total = torch.zeros(shape, dtype=dtype, device=device).index_add_(0, cell, values)
            return total.double().cpu().numpy()

        doubled = lengths.double()
        sums = Sums(
            count=sizes.astype(np.float64),
            nonzero=by_cell((squares > 0).to(dtype)),
            total=by_cell(rows),
            trace=by_cell(lengths),
            cubic=by_cell(rows * lengths[:, None]),
            quartic=_summed_double(doubled.square(), cell, count),
            units=by_cell(units),
            energy=units.square().sum(dim=0).double().cpu().numpy(),
            sketch=self._sketched(),
        )
        self._units = units
        return sums, squares.double().cpu().numpy(), inverse.cpu().numpy()

    def _sketched(self) -> Array:
        rows = self._shifted
        rank = sketch_rank(self.width) if self.sketched and not self.independent else 0
        starts = self.cells.starts
        sketch = torch.zeros((len(starts) - 1, rank, self.width), device=rows.device)
        if rank:
            seen = rows @ torch.from_numpy(directions(self.width)).to(rows)  # (n, rank)
            for cell in range(len(starts) - 1):
                part = slice(int(starts[cell]), int(starts[cell + 1]))
                sketch[cell] = seen[part].T @ rows[part]
        return sketch.cpu().numpy()

    @lazy
    def document_sums(self) -> tuple[Array, Array]:
        """For each cell, the sums over its documents of |sum of u|^2 and of rows squared."""
        sums, cells = self.sums, self.cells
        if self.independent:
            return sums.nonzero.copy(), sums.nonzero.copy()
        ordered = self.documents[cells.order]
        fresh = np.r_[True, ordered[1:] != ordered[:-1]]
        starts = np.flatnonzero(fresh)
        number = torch.from_numpy(np.cumsum(fresh) - 1).to(self._units.device)
        shape = (len(starts), self.width)
        totals = torch.zeros(shape, dtype=self._units.dtype, device=self._units.device)
        totals = totals.index_add_(0, number, self._units).double()
        own = totals.square().sum(dim=1).cpu().numpy()
        there = (self._summed[2] > 0).astype(np.float64)
        sizes = np.add.reduceat(there, starts)
        where = np.searchsorted(cells.starts, starts, side="right") - 1
        count = len(cells.keys)
        return np.bincount(where, own, count), np.bincount(where, sizes**2, count)


class TensorRows:
    """Rows of a tensor that come to NumPy only when they are chosen."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.dtype = np.dtype(np.float64 if tensor.dtype == torch.float64 else np.float32)
        self.shape = tuple(tensor.shape)

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, chosen: Array) -> Array:
        where = torch.from_numpy(np.asarray(chosen)).to(self.tensor.device)
        return self.tensor[where].cpu().numpy()


def _summed_double(values: Tensor, cell: Tensor, count: int) -> Array:
    total = torch.zeros(count, dtype=torch.float64, device=values.device)
    return total.index_add_(0, cell, values).cpu().numpy()
