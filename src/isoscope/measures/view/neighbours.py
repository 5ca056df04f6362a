"""Sampled rows beside each other: nearest neighbours, and a kernel summed over pairs."""

from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np

from isoscope.accumulate import Reservoir
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.hashing import sorted_distinct
from isoscope.measures.view.summaries import GroupView, Summaries
from isoscope.types import Array

KEPT = 40  # neighbours kept of each row, so that some are left when a group is not
LEAST = 22  # rows, enough for twenty neighbours
ENOUGH = 256  # rows, up to which several of one document are better than fewer
EQUAL = 1e-6  # logarithms of ratios of distances that are no more than rounding
_CHUNK = 512
_STRIP = 256  # rows of a symmetric product that are computed at once
_MOST = 4096  # rows of which all products are kept in memory
_SAMPLE = 64  # rows looked at to find a centre
SHARPNESS = 2.0  # t of Wang and Isola


@dataclass(frozen=True, kw_only=True)
class Neighbours(GroupView):
    """Distances from each sampled row to its nearest others, and the group of each."""

    needs = (Reservoir,)
    kept: ClassVar[int] = KEPT
    least: ClassVar[int] = LEAST
    rows: Array  # (m, d)
    cells: Array  # (m,) group of each row
    which: Array  # (m, kept) neighbours, nearest first
    cells_near: Array  # (m, kept) group of each neighbour
    distances: Array  # (m, kept)
    excluded: int | None = None  # a group

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the neighbours in the sample, of which documents have as few rows as will do.

        One row of each document, and where these are fewer than `ENOUGH` further rows of
        them until there are as many: the number of rows grows steadily with documents.
        """
        sample = summaries.of(Reservoir)
        documents = len(sorted_distinct(sample.documents))
        sample = sample.spread_over_documents(max(documents, ENOUGH)).distinct()
        if sample.count < cls.least:
            raise TooFewRowsError(
                f"an intrinsic dimension needs at least {cls.least} distinct rows, "
                f"got {sample.count}",
                hint="give more rows; copies of a row count once",
                slug="too-few-distinct-rows",
            )
        rows = sample.rows
        which, distances = nearest(rows, min(cls.kept, len(rows) - 1))
        return cls(
            keys=sample.keys,
            sizes=np.bincount(sample.cells).astype(np.float64),
            documents=documents,
            rows=rows,
            cells=sample.cells,
            which=which,
            cells_near=sample.cells.astype(np.int16)[which],
            distances=distances,
        )

    @property
    def count(self) -> int:
        """How many rows have their neighbours counted."""
        gone = 0 if self.excluded is None else self.sizes[self.excluded]
        return int(self.sizes.sum() - gone)

    def without(self, group: int) -> Self:
        """Return the view as if a group had never been seen."""
        return self.changed(excluded=group)

    def first(self, k: int) -> Array:
        """Return the distances of every row to its k nearest, (count, k)."""
        if self.excluded is None:
            return self.distances[:, :k]
        if self.count <= k:
            raise TooFewRowsError(
                f"{k} neighbours need at least {k + 1} distinct rows, got {self.count}",
                hint="give more rows; copies of a row count once",
                slug="too-few-distinct-rows",
            )
        here, fewer, near = self.changed_by(self.excluded, k)
        found = self.distances[here, :k]
        found[fewer] = near
        return found

    def changed_by(self, group: int, k: int) -> tuple[Array, Array, Array]:
        """Return which rows are left without a group, and which of those have other neighbours.

        The latter are numbered among the former; with the distances to their k nearest.
        """
        here = np.flatnonzero(self.cells != group)
        gone = self.cells_near[here] == group  # (count, kept)
        # About half of the rows have no neighbour of that group among the first twenty.
        fewer = np.flatnonzero(gone[:, :k].any(axis=1))
        usable = ~gone[fewer]
        rank = np.cumsum(usable, axis=1, dtype=np.int16)
        short = rank[:, -1] < k
        taken = usable & (rank <= k)
        taken[short] = False
        near = np.empty((len(fewer), k))
        near[~short] = self.distances[here[fewer]][taken].reshape(-1, k)
        if short.any():  # most neighbours were of that group: search again
            _, near[short] = nearest(self.rows[here], k, of=fewer[short])
        return here, fewer, near


class FarNeighbours(Neighbours):
    """A hundred neighbours of each row, and some to spare."""

    kept = 160
    least = 102


@dataclass(frozen=True, kw_only=True)
class Pairs(GroupView):
    """Sums of exp(-t |u - v|^2) over pairs, by the groups of the two."""

    needs = (Reservoir,)
    kernel: Array  # (groups, groups), a row with itself excluded

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the sums over the sample; rows of length zero have no direction."""
        sample = summaries.of(Reservoir)
        norms = np.sqrt(_squares(sample.rows))
        kept = norms > 0
        rows = (sample.rows[kept] / norms[kept, None]).astype(sample.rows.dtype)
        member = np.eye(len(sample.keys), dtype=rows.dtype)[sample.cells[kept]]  # (m, groups)
        kernel = np.zeros((member.shape[1], member.shape[1]))
        near = _symmetric(rows, _kernel)
        np.fill_diagonal(near, 0.0)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            kernel += member[part].T @ (near[part] @ member)
        return cls(
            keys=sample.keys,
            sizes=member.sum(axis=0, dtype=np.float64),
            documents=len(sorted_distinct(sample.documents)),
            kernel=kernel,
        )

    def without(self, group: int) -> Self:
        """Return the view as if a group had never been seen."""
        keep = np.arange(self.groups) != group
        return super().without(group).changed(kernel=self.kernel[np.ix_(keep, keep)])


def _squares(rows: Array) -> Array:
    """Return the squared length of each row, summed in float64.

    `np.vecdot` with that type converts its rows through a small buffer, three times as slowly.
    """
    parts = (rows[start : start + _STRIP] for start in range(0, len(rows), _STRIP))
    wide = [part.astype(np.float64) for part in parts]
    return np.concatenate([np.vecdot(each, each) for each in wide] or [np.zeros(0)])


def _kernel(cosines: Array) -> Array:
    """Return exp(-t |u - v|^2) of cosines, in their place."""
    np.minimum(cosines, 1, out=cosines)
    cosines -= 1
    cosines *= 2 * SHARPNESS
    return np.exp(cosines, out=cosines)


def _symmetric(rows: Array, of: Callable[[Array], Array] | None = None) -> Array:
    """Return the products of all pairs of rows, or a function of them: half of the work.

    What lies below the diagonal is copied from above it: not every BLAS sums up a product in
    the same order on both sides.
    """
    out = np.empty((len(rows), len(rows)), dtype=rows.dtype)
    for start in range(0, len(rows), _STRIP):
        strip = rows[start : start + _STRIP] @ rows[start:].T
        below = np.tri(len(strip), k=-1, dtype=bool)
        square = strip[:, : len(strip)]
        square[below] = square.T[below]
        strip = strip if of is None else of(strip)
        out[start : start + _STRIP, start:] = strip
        out[start:, start : start + _STRIP] = strip.T
    return out


def equally_far() -> UndefinedError:
    """Return the error for rows such as one-hot ones, whose dimension has no end."""
    return UndefinedError(
        "an intrinsic dimension needs neighbours at different distances, got equal ones",
        hint="rows on a lattice, or all orthogonal, have no intrinsic dimension",
        slug="no-spread",
    )


def nearest(rows: Array, k: int, of: Array | None = None) -> tuple[Array, Array]:
    """Return the k nearest others of each row (or of those numbered), and their distances.

    One matrix product per chunk, in the precision of the rows. Its rounding goes with the
    norms, so that the distances of pairs much closer than that are worked out again.
    """
    those = np.arange(len(rows)) if of is None else of
    spare = min(len(rows) - 1, k + 2)
    centred = rows - _median(rows[:_SAMPLE])  # no mean: one giant would pull it
    exponent = int(np.frexp(np.abs(centred).max())[1])
    # exact; squares neither vanish nor overflow
    centred, scaled = np.ldexp(centred, -exponent), np.ldexp(rows, -exponent)
    squares = np.vecdot(centred, centred)
    which = np.empty((len(those), k), dtype=np.int64)
    distances = np.empty((len(those), k))
    products = _symmetric(centred) if of is None and len(rows) <= _MOST else None
    for start in range(0, len(those), _CHUNK):
        here = those[start : start + _CHUNK]
        known = None if products is None else products[start : start + _CHUNK]
        chosen, near = _candidates(centred, squares, here, spare, known)
        unsure = _close(squares, here, chosen, near).all(axis=1)
        if unsure.any() and spare < len(rows) - 1:  # among more near copies than are chosen
            wide = centred.astype(np.float64)
            chosen[unsure], near[unsure] = _candidates(
                wide, np.vecdot(wide, wide), here[unsure], spare
            )
        exact = _exact(scaled, squares, here, chosen, near)
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        which[start : start + _CHUNK] = np.take_along_axis(chosen, order, axis=1)
        distances[start : start + _CHUNK] = np.take_along_axis(exact, order, axis=1)
    return which, np.ldexp(np.sqrt(distances), exponent)


def _median(rows: Array) -> Array:
    """Return the median of each column, as np.median does, which would import numpy.ma."""
    ordered = np.sort(rows, axis=0)
    return (ordered[(len(rows) - 1) // 2] + ordered[len(rows) // 2]) / 2


def _candidates(
    rows: Array, squares: Array, here: Array, k: int, products: Array | None = None
) -> tuple[Array, Array]:
    """Return the k nearest by the product, and their squared distances less the row's own.

    Products that are known already are overwritten.
    """
    gaps = rows[here] @ rows.T if products is None else products
    gaps *= -2
    gaps += squares  # the square of the row itself does not change the order
    gaps[np.arange(len(here)), here] = np.inf
    return _smallest(gaps, k)


def _close(squares: Array, here: Array, chosen: Array, near: Array) -> Array:
    """Whether pairs are so much closer than they are long that the product lost digits."""
    scale = squares[here][:, None] + squares[chosen]
    computed = near + squares[here][:, None]
    return computed <= scale * (0.1 if squares.dtype == np.float32 else 1e-3)


def _smallest(gaps: Array, k: int) -> tuple[Array, Array]:
    """Return columns and values of the k smallest entries of each row; destroys the entries."""
    if k > 8:
        # Values are partitioned in two thirds of the time that their places are.
        bound = np.partition(gaps, k - 1, axis=1)[:, k - 1 : k]
        places = np.flatnonzero(gaps <= bound)
        if len(places) == k * len(gaps):  # none ties with the last one
            found = (places % gaps.shape[1]).reshape(-1, k)
            return found, np.take_along_axis(gaps, found, axis=1)
        found = np.argpartition(gaps, k - 1, axis=1)[:, :k]
        return found, np.take_along_axis(gaps, found, axis=1)
    found = np.empty((len(gaps), k), dtype=np.int64)
    values = np.empty((len(gaps), k), dtype=gaps.dtype)
    rows = np.arange(len(gaps))
    for rank in range(k):  # a few passes of argmin are faster than one partition
        found[:, rank] = gaps.argmin(axis=1)
        values[:, rank] = gaps[rows, found[:, rank]]
        gaps[rows, found[:, rank]] = np.inf
    return found, values


def _exact(rows: Array, squares: Array, here: Array, chosen: Array, near: Array) -> Array:
    """Return squared distances in float64, from differences where the product lost digits."""
    exact = (near + squares[here][:, None]).astype(np.float64)
    lost = np.nonzero(_close(squares, here, chosen, near))
    for start in range(0, len(lost[0]), _CHUNK):
        first, second = (part[start : start + _CHUNK] for part in lost)
        gap = rows[here[first]].astype(np.float64) - rows[chosen[first, second]]
        exact[first, second] = np.vecdot(gap, gap)
    return exact
