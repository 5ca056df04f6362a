"""A block: consecutive rows, and the sums of them that several accumulators share.

An update is a merge with a one-block state, so this is the only file with arithmetic on
rows. Everything is about an `origin` near the mean: sums of squares about zero would lose
every digit of a cloud whose mean is ten thousand times its spread.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Protocol

import numpy as np

from isoscope.accumulate.membership import Cells, Membership
from isoscope.accumulate.sums import (
    CellSums,
    DocumentSquares,
    DocumentSums,
    RowNames,
    SinkRows,
    lazy,
)
from isoscope.hashing import ordinal_documents
from isoscope.types import Array, as_rows

_SAMPLE = 64  # rows looked at to find an origin
_PART = 512  # rows squared at once, so that they stay in the cache
_TAKEN = 256  # rows sorted at once, which the nearest cache holds
WIDE_PART = 1024  # float32 rows that are float64 at once
_GIANT = 10  # mean fourth power over squared mean square, of rows fit for float32
LEAST_SQUARE = 1e-30  # squared norm below which float32 has lost digits
_OFF_GRID = np.float32(0.381966)  # of a step between neighbouring numbers


class RowsOnDevice(Protocol):
    """Rows that live elsewhere and become an array when some of them are chosen."""

    shape: tuple[int, int]  # (n, d)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """float32 or float64."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, chosen: Array, /) -> Array: ...

    def columns(self, step: int) -> Array:
        """Return every `step`-th column of all rows, counted from the last one."""
        ...


class Block(ABC):
    """Consecutive rows of whole documents; what is summed of them is summed once.

    `ArrayBlock` sums rows in NumPy, `capture.tensor_block.TensorBlock` where a tensor is.
    """

    def __init__(
        self,
        members: Membership,
        width: int,
        *,
        origin: Array | None = None,
        sketched: bool = True,
        sinks: SinkRows | None = None,
        names: RowNames | None = None,
    ) -> None:
        self.members = members
        self.width = width  # the number of values in a row
        self.independent = members.independent
        self.documents, self.positions = members.documents, members.positions  # (n,) each
        self.tokens, self.frequency = members.tokens, members.frequency  # (n,) or None
        self.sketched = sketched
        self.sinks = sinks  # where the rows are sinks
        self.names = names  # where the source names its rows
        self._origin = origin  # a point that may be near the mean

    def __len__(self) -> int:
        return len(self.members)

    @property
    def cells(self) -> Cells:
        """The rows by half and cell."""
        return self.members.cells

    @property
    def sums(self) -> CellSums:
        """The sums of every cell."""
        return self._totals[0]

    @lazy
    def squares(self) -> Array:
        """Squared norms of the rows, in their own order, float64."""
        squares = np.empty(len(self))
        squares[self.cells.order] = self._totals[1]
        return squares

    @property
    @abstractmethod
    def rows(self) -> Array | RowsOnDevice:
        """The rows, (n, d)."""

    @abstractmethod
    def about(self, centre: Array) -> "Block":
        """Return the block with the centre subtracted from every row."""

    @abstractmethod
    def unit_sums(self, chosen: Array, labels: Array, number: int) -> tuple[Array, Array]:
        """Return the sums of the unit vectors of chosen rows under each label, and counts.

        (number, d) and (number,): rows of length zero have no direction and do not count.
        """

    @lazy
    @abstractmethod
    def by_band_cell(self) -> tuple[Array, Array]:
        """The sums of unit vectors of each pair of bands of each cell, and counts.

        (pairs, d) and (pairs,), in the order of `members.band_cells`.
        """

    @lazy
    @abstractmethod
    def origin(self) -> Array:
        """A point near the mean, (d,) float64; the one offered, if it is near enough."""

    def _near_enough(self, sample: Array) -> Array | None:
        """Return the point offered as origin, or zero, if it is near the mean of a sample."""
        spread = np.var(sample, axis=0).sum()
        for offered in (self._origin, np.zeros(self.width)):
            # zero is best where it will do: nothing to subtract
            if offered is not None and _square_off(sample, offered) <= spread / 4:
                return offered
        return None

    def _or_offered(self, sample: Array, point: Array) -> Array:
        """Return a point near the mean of a sample, or the one offered if it is as near.

        Sums about one point simply add up. The median may be far from the mean itself, where
        a few long directions are skewed; a new one for every block would be no nearer.
        """
        offered = self._origin
        if offered is not None and _square_off(sample, offered) <= 2 * _square_off(
            sample, point
        ):
            return offered
        return point

    @lazy
    @abstractmethod
    def scatters(self) -> tuple[Array, Array]:
        """Sum of z z' over the rows of each half, (d, d), in the precision of the rows."""

    @abstractmethod
    def wide_sums(self, axes: Array | None = None) -> list[tuple[Array, Array]]:
        """Return for each half the sums of z and of z (z'A), (d,) and (d, k), in float64.

        Without axes A, (d, k), they are those of z and of z z'.
        """

    @property
    def totals(self) -> tuple[Array, Array]:
        """Sum of z over the rows of each half, (d,)."""
        first = self.cells.halves == 0
        total = self.sums.total
        return total[first].sum(axis=0), total[~first].sum(axis=0)

    @property
    def half_rows(self) -> tuple[int, int]:
        """How many rows each half has."""
        return self.cells.split, len(self) - self.cells.split

    @lazy
    def document_squares(self) -> DocumentSquares:
        """The squares of each cell, summed over its documents."""
        if self.independent:
            nonzero, starts = self.sums.nonzero, self.cells.starts[:-1]
            lengths = np.add.reduceat(self._totals[1], starts)
            return DocumentSquares(nonzero.copy(), nonzero.copy(), lengths, self.sums.count)
        return self._square_documents()

    @abstractmethod
    def _square_documents(self) -> DocumentSquares:
        """Return the squares of each cell where documents have several rows."""

    @lazy
    @abstractmethod
    def by_document(self) -> DocumentSums:
        """The sums of each document, in the order of the cells."""

    @lazy
    @abstractmethod
    def _totals(self) -> tuple[CellSums, Array, Array]:
        """The sums, and squared norms and inverse norms of the sorted rows."""


class ArrayBlock(Block):
    """A block whose rows are a NumPy array.

    Without `documents` every row is its own: `start` is the number of the first.
    """

    def __init__(
        self,
        rows: Array,
        documents: Array | None = None,
        positions: Array | None = None,
        *,
        independent: bool | None = None,
        origin: Array | None = None,
        scratch: Array | None = None,
        sketched: bool = True,
        folded: bool | None = None,
        start: int = 0,
        tokens: Array | None = None,
        frequency: Array | None = None,
        sinks: SinkRows | None = None,
        names: RowNames | None = None,
        ordinals: Array | None = None,
    ) -> None:
        self._rows = as_rows(rows)  # (n, d)
        n = len(self._rows)
        if documents is None:
            documents = ordinal_documents("rows", np.arange(start, start + n, dtype=np.uint64))
            independent = True if independent is None else independent
        members = Membership(
            documents,
            np.zeros(n, dtype=np.uint64) if positions is None else positions,
            independent=bool(independent),
            folded=folded,
            tokens=tokens,
            frequency=frequency,
            ordinals=ordinals,
        )
        super().__init__(
            members,
            self._rows.shape[1],
            origin=origin,
            sketched=sketched,
            sinks=sinks,
            names=names,
        )
        self._scratch = scratch

    @classmethod
    def of(cls, rows: Array, members: Membership, *, sketched: bool = True) -> "ArrayBlock":
        """Return the block of rows whose membership is known."""
        block = cls.__new__(cls)
        Block.__init__(block, members, rows.shape[1], sketched=sketched)
        block._rows, block._scratch = rows, None
        return block

    @property
    def rows(self) -> Array:
        """The rows, (n, d)."""
        return self._rows

    def about(self, centre: Array) -> "ArrayBlock":
        """Return the block with the centre subtracted from every row.

        In two steps, because a float32 centre far from zero is off by more than the
        spread of the rows may allow. In float64 about a centre that float32 cannot hold, as
        a damaged file may name one.
        """
        rows = self.rows
        if np.abs(centre).max(initial=0.0) > np.finfo(rows.dtype).max:
            rows = rows.astype(np.float64)
        near = centre.astype(rows.dtype)
        rows = rows - near
        rows -= (centre - near).astype(rows.dtype)
        return ArrayBlock.of(rows, self.members, sketched=False)

    def reorder(self, order: Array) -> "ArrayBlock":
        """Return the block with its rows in another order, documents together again."""
        by_row = ("documents", "positions", "tokens", "frequency", "ordinals")
        known = {name: getattr(self.members, name) for name in by_row}
        moved = {name: None if each is None else each[order] for name, each in known.items()}
        return ArrayBlock.of(self.rows[order], replace(self.members, **moved))

    @lazy
    def origin(self) -> Array:
        """A point near the mean, float64; the one offered, if it will do."""
        step = max(1, len(self) // _SAMPLE)
        sample = self.rows[::step][:_SAMPLE].astype(np.float64)
        offered = self._near_enough(sample)
        if offered is not None:
            return offered
        # The median: one token of a thousand times the norm must not pull it away.
        near = np.median(sample, axis=0).astype(self.rows.dtype)
        # Off the grid of the rows: far from zero they are whole multiples of a step, and
        # sums of squares of whole numbers are rounded down more often than up. A constant
        # column stays on it, to be exactly zero.
        rest = np.where((sample != sample[0]).any(axis=0), np.spacing(near) * _OFF_GRID, 0)
        return self._or_offered(sample, near.astype(np.float64) + rest.astype(self.rows.dtype))

    @lazy
    def scatters(self) -> tuple[Array, Array]:
        """Sum of z z' over the rows of each half, (d, d), in the precision of the rows."""
        _ = self._totals
        cut, rows = self.cells.split, self._sorted
        # numpy turns x.T @ x on one array into a symmetric product: half the work
        return rows[:cut].T @ rows[:cut], rows[cut:].T @ rows[cut:]

    def wide_sums(self, axes: Array | None = None) -> list[tuple[Array, Array]]:
        """Return for each half the sums of z and of z (z'A), (d,) and (d, k), in float64."""
        _ = self._totals
        found: list[tuple[Array, Array]] = []
        for half in (slice(self.cells.split), slice(self.cells.split, None)):
            rows, total = self._sorted[half], np.zeros(self.width)
            product = np.zeros((self.width, self.width if axes is None else axes.shape[1]))
            for start in range(0, len(rows), WIDE_PART):
                part = rows[start : start + WIDE_PART].astype(np.float64)
                total += part.sum(axis=0)
                product += part.T @ (part if axes is None else part @ axes)
            found.append((total, product))
        return found

    def _square_documents(self) -> DocumentSquares:
        cells, rows = self.cells, self._sorted
        side = np.stack([self._totals[2], np.ones(len(self), dtype=rows.dtype)])
        ordered = self.documents[cells.order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        where = np.searchsorted(cells.starts, starts, side="right") - 1
        found = np.zeros((4, len(cells.keys)))
        for cell, start, end in zip(where, starts, np.r_[starts[1:], len(self)], strict=True):
            weights = side[:, start:end]
            total = (weights @ rows[start:end]).astype(np.float64)  # (2, d)
            total += weights.sum(axis=1, dtype=np.float64)[:, None] * self.origin
            units, whole = np.vecdot(total, total)
            there = np.count_nonzero(weights[0])
            found[:, cell] += units, there**2, whole, (end - start) ** 2
        return DocumentSquares(*found)

    @lazy
    def by_document(self) -> DocumentSums:
        """The sums of each document, in the order of the cells."""
        _, _, weights = self._totals
        ordered = self.documents[self.cells.order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        ends = np.r_[starts[1:], len(self)]
        side = np.stack([weights, np.ones_like(weights)])
        sums = np.empty((len(starts), 2, self.width))
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            sums[place] = side[:, start:end] @ self._sorted[start:end]
        wide = np.add.reduceat(side.astype(np.float64), starts, axis=1).T
        sums += wide[:, :, None] * self.origin
        return DocumentSums(
            keys=ordered[starts],
            units=sums[:, 0],
            total=sums[:, 1],
            nonzero=np.add.reduceat((weights > 0).astype(np.float64), starts),
            rows=(ends - starts).astype(np.float64),
        )

    def unit_sums(self, chosen: Array, labels: Array, number: int) -> tuple[Array, Array]:
        """Return the sums of the unit vectors of chosen rows under each label, and how many.

        (number, d) and (number,): rows of length zero have no direction and do not count.
        """
        order = np.argsort(labels, kind="stable")
        rows = self.rows[chosen[order]].astype(np.float64)
        norms = np.sqrt(np.vecdot(rows, rows))
        rows /= np.where(norms > 0, norms, 1.0)[:, None]
        there, starts = np.unique(labels[order], return_index=True)
        sums = np.zeros((number, self.width))
        sums[there] = np.add.reduceat(rows, starts, axis=0)
        return sums, np.bincount(labels[order], norms > 0, number)

    @lazy
    def by_band_cell(self) -> tuple[Array, Array]:
        """The sums of unit vectors of each pair of bands of each cell, and counts."""
        bands = self.members.band_cells
        inverse = self._totals[2][bands.order].astype(np.float64)
        units = self._sorted[bands.order] * inverse[:, None] + inverse[:, None] * self.origin
        nonzero = np.add.reduceat((inverse > 0).astype(np.float64), bands.starts)
        return np.add.reduceat(units, bands.starts, axis=0), nonzero

    @lazy
    def _sorted(self) -> Array:
        """Room for the rows minus the origin, sorted by cell; filled by `_totals`."""
        room, rows = self._scratch, self.rows
        if room is None or room.dtype != rows.dtype or room.shape[1] != self.width:
            return np.empty(rows.shape, dtype=rows.dtype)
        return room[: len(self)] if len(room) >= len(self) else np.empty_like(rows)

    @lazy
    def _totals(self) -> tuple[CellSums, Array, Array]:
        """The sums, and squared norms and inverse norms of the sorted rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            summed = self._sum()
            low = self.cells.order[summed[1] < LEAST_SQUARE]
            if self.rows.dtype == np.float32 and not (
                representable(*summed[:2])
                and not self.rows[low].any()  # rows of zeros are fine
            ):
                self._rows, self._scratch, self._origin = self.rows.astype(float), None, None
                vars(self).pop("origin", None)
                vars(self).pop("_sorted", None)
                summed = self._sum()
        return summed

    def _sum(self) -> tuple[CellSums, Array, Array]:
        """Sort the rows and sum them up, each cell while the cache still has its rows."""
        cells, rows, dtype = self.cells, self._sorted, self.rows.dtype
        starts = cells.starts
        near = self.origin.astype(dtype)
        rest = (self.origin - near).astype(dtype)
        moved, moved_twice = near.any(), rest.any()
        squares, inverse = np.empty((2, len(rows)), dtype=dtype)
        # what rows are weighted with: 1, |z|^2 and 1 / |x|
        side = np.ones((3, len(rows)), dtype=dtype)
        summed = np.empty((len(cells.keys), 3, self.width), dtype=dtype)
        energy = np.zeros(self.width)
        cell = 0
        for done in _sort_and_square(self.rows, cells.order, rows, squares, inverse, energy):
            while cell < len(cells.keys) and starts[cell + 1] <= done:
                here = slice(int(starts[cell]), int(starts[cell + 1]))
                own, weights = rows[here], side[:, here]
                weights[1], weights[2] = squares[here], inverse[here]
                if moved:
                    np.matmul(weights[2:], own, out=summed[cell, 2:])
                    own -= near
                    if moved_twice:
                        own -= rest
                    weights[1] = np.vecdot(own, own)
                    np.matmul(weights[:2], own, out=summed[cell, :2])
                else:
                    np.matmul(weights, own, out=summed[cell])
                cell += 1
        total, cubic, units = summed.transpose(1, 0, 2).astype(np.float64)
        lengths = side[1].astype(np.float64)
        starts = starts[:-1]
        sums = CellSums(
            count=np.diff(cells.starts).astype(np.float64),
            nonzero=np.add.reduceat((inverse > 0).astype(np.float64), starts),
            total=total,
            trace=np.add.reduceat(lengths, starts),
            cubic=cubic,
            quartic=np.add.reduceat(lengths * lengths, starts),
            units=units,
            energy=energy,
            sketch=self._sketch(),
        )
        return sums, squares.astype(np.float64), inverse

    def _sketch(self) -> Array:
        """Return the scatter of each cell as seen from the directions, (cells, rank, d)."""
        rank = sketch_rank(self.width) if self.sketched and not self.independent else 0
        starts, dtype = self.cells.starts, self.rows.dtype
        out = np.empty((len(starts) - 1, rank, self.width), dtype=dtype)
        if rank:
            seen = directions(self.width)[:, :rank].T.astype(dtype) @ self._sorted.T
            for cell in range(len(out)):
                part = slice(int(starts[cell]), int(starts[cell + 1]))
                np.matmul(seen[:, part], self._sorted[part], out=out[cell])
        return out


def _square_off(sample: Array, point: Array) -> float:
    """Return the squared distance of a point from the mean of a sample."""
    offset = sample.mean(axis=0) - point
    return float(offset @ offset)


def representable(sums: CellSums, squares: Array) -> bool:
    """Whether squares and cubes of float32 rows stayed within what float32 can hold."""
    if not np.isfinite(squares).all() or squares.max(initial=0.0) > 1e30:
        return False
    # |z|^3 between 1e-27 and 1e30, or zero
    rows, whole = len(squares), sums.quartic.sum()
    if whole == 0:
        return True
    # One giant among many rows: debiasing takes its fourth power away from a sum that is
    # little else, and float32 would leave no digits.
    giant = rows * whole > _GIANT * sums.trace.sum() ** 2
    return bool(whole / rows > 1e-36 and sums.quartic.max() < 1e40 and not giant)


def _sort_and_square(
    rows: Array, order: Array, out: Array, squares: Array, inverse: Array, energy: Array
) -> Iterator[int]:
    """Sort rows into `out`, a part at a time; yield how many are there.

    Fills the squared norms and the inverse norms of the sorted rows, and adds to the sum of
    squared unit vectors, (d,). Rows that are there may be written to.
    """
    spare = np.empty((min(_PART, len(rows)), rows.shape[1]), dtype=rows.dtype)
    for start in range(0, len(rows), _PART):
        end = min(start + _PART, len(rows))
        for first in range(start, end, _TAKEN):
            few = slice(first, min(first + _TAKEN, end))
            taken = np.take(rows, order[few], axis=0, out=out[few], mode="clip")
            np.vecdot(taken, taken, out=squares[few])
        here = slice(start, end)
        with np.errstate(divide="ignore"):
            roots = 1 / np.sqrt(squares[here])
        weights = inverse[here] = np.where(squares[here] > 0, roots, 0)
        squared = np.multiply(out[here], out[here], out=spare[: end - start])
        energy += (weights * weights) @ squared
        yield end


def sketch_rank(width: int) -> int:
    """Return how many directions a scatter is seen from."""
    return min(width, 48)


@cache
def directions(width: int) -> Array:
    """The fixed directions of the sketch, (width, rank); all axes when width allows."""
    rank = sketch_rank(width)
    if width == rank:
        return np.eye(width)
    rng = np.random.Generator(np.random.PCG64([width, rank]))
    return rng.standard_normal((width, rank)) / np.sqrt(width)
