"""Which rows of a block belong together: documents, cells of documents, pairs of bands.

A cell is a document, or a group of documents where they are many; rows are sorted by half
and cell once, and all sums go through that order.
"""

from dataclasses import field

import numpy as np

from isoscope.accumulate.row_bands import FREQUENCIES, POSITIONS, position_bands
from isoscope.accumulate.sums import TokenTypes, lazy
from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS, hash_tuples, type_hashes
from isoscope.types import Array


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of a block sorted by half and cell; a cell is a document or a group of them."""

    order: Array  # (n,) sorts the rows
    starts: Array  # (cells + 1,) where each cell begins among the sorted rows
    keys: Array  # (cells,) uint64: the documents, or the groups when folded
    halves: Array  # (cells,) 0 or 1
    folded: bool  # whether keys are groups
    split: int  # sorted rows before this one are of half 0


@dataclass(frozen=True, slots=True)
class BandCellRows:
    """The sorted rows of a block, sorted once more by pair of bands within each cell."""

    order: Array  # (n,) sorts the sorted rows
    starts: Array  # (pairs,) where each pair of bands of a cell begins
    cell: Array  # (pairs,)
    frequency: Array  # (pairs,) its frequency band
    position: Array  # (pairs,) its position band


@dataclass(frozen=True, eq=False)
class Membership:
    """The document and position of every row, and how documents fall into cells."""

    documents: Array  # (n,) keys made by `hashing`; rows of a document are consecutive
    positions: Array  # (n,) distinguish rows of one document
    independent: bool = field(default=False, kw_only=True)  # each row is a document
    folded: bool | None = field(default=None, kw_only=True)  # None: by number of documents
    tokens: Array | None = field(default=None, kw_only=True)  # (n,) ids, if rows are tokens
    frequency: Array | None = field(default=None, kw_only=True)  # (n,) band of each token
    ordinals: Array | None = field(default=None, kw_only=True)  # (n,) of rows in their file

    def __len__(self) -> int:
        return len(self.documents)

    @lazy
    def runs(self) -> Array:
        """Where each document begins, and at the end the number of rows."""
        if self.independent:
            return np.arange(len(self) + 1)
        changes = np.flatnonzero(self.documents[1:] != self.documents[:-1]) + 1
        return np.concatenate([[0], changes, [len(self)]])

    @lazy
    def types(self) -> TokenTypes:
        """The token types; only where rows are tokens."""
        assert self.tokens is not None
        ids, where = np.unique(self.tokens, return_inverse=True)
        return TokenTypes(ids, type_hashes(ids), where)

    @lazy
    def draws(self) -> Array:
        """A number for every row, (n,) uint64: samples keep the rows of the smallest."""
        return hash_tuples(self.documents, self.positions)

    @lazy
    def band_cells(self) -> BandCellRows:
        """The rows by cell, frequency band and position band.

        Where no frequency is known, all rows are in the first band.
        """
        order, shape = self.cells.order, (len(self.cells.keys), len(FREQUENCIES), POSITIONS)
        cell = np.repeat(np.arange(shape[0]), np.diff(self.cells.starts))
        frequent = np.zeros_like(cell)
        if self.frequency is not None:
            frequent = self.frequency[order].astype(np.int64)
        place = position_bands(self.positions[order])
        labels = np.ravel_multi_index((cell, frequent, place), shape)  # (n,)
        by_label = np.argsort(labels, kind="stable")
        ordered = labels[by_label]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        return BandCellRows(by_label, starts, *np.unravel_index(ordered[starts], shape))

    @lazy
    def cells(self) -> Cells:
        """The rows by half and cell: documents while they are few, then groups of them."""
        keys = self.documents[self.runs[:-1]]
        folded = len(keys) > GROUPS if self.folded is None else self.folded
        if folded:
            keys = keys % np.uint64(GROUPS)
        rank = (keys % np.uint64(2)).astype(np.uint64)
        by_row = np.repeat(keys, np.diff(self.runs)) if not self.independent else keys
        half = np.repeat(rank, np.diff(self.runs)) if not self.independent else rank
        if folded:  # one byte sorts by radix
            order = np.argsort((half * GROUPS + by_row).astype(np.uint8), kind="stable")
        else:
            order = np.lexsort((by_row, half))
        ordered = by_row[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        halves = half[order][starts].astype(np.int64)
        split = int((half == 0).sum())
        return Cells(order, np.r_[starts, len(self)], ordered[starts], halves, folded, split)
