"""A sample of rows that is the same whatever the order, the cuts and the machines."""

from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block, RowsOnDevice
from isoscope.accumulate.copies import content_hashes
from isoscope.accumulate.kept_rows import KeptRows
from isoscope.accumulate.sums import lazy
from isoscope.dataclass import dataclass
from isoscope.errors import MergeError
from isoscope.hashing import GROUPS, sorted_distinct
from isoscope.types import Array

SIZE = 2048
_FEW = 16  # numbers of a row that are compared first


@dataclass(frozen=True)
class ReservoirSummary:
    """The kept rows, in the order of their hashes, and the document of each."""

    rows: Array  # (k, d)
    documents: Array  # (k,) uint64
    seen: int  # rows the sample was drawn from
    independent: bool

    @property
    def count(self) -> int:
        """How many rows were kept."""
        return len(self.rows)

    @lazy
    def _groups(self) -> tuple[Array, Array]:
        """The groups, and the number of each row's: its document while there are few."""
        keys, numbers = np.unique(self.documents, return_inverse=True)
        if len(keys) > GROUPS:
            return np.unique(self.documents % np.uint64(GROUPS), return_inverse=True)
        return keys, numbers

    @property
    def keys(self) -> Array:
        """Which groups of documents there are."""
        return self._groups[0]

    @property
    def cells(self) -> Array:
        """Number of the group of each row: its document while there are few, else its hash."""
        return self._groups[1]

    def distinct(self) -> "ReservoirSummary":
        """Return the sample without exact copies of a row."""
        step = -(-self.rows.shape[1] // _FEW)
        few = self.rows[:, ::step] + self.rows.dtype.type(0)  # -0.0 becomes 0.0
        if len(sorted_distinct(content_hashes(few))) == self.count:  # mostly these numbers tell
            return self
        kept = np.sort(np.unique(self.rows, axis=0, return_index=True)[1])
        return self._only(kept)

    def spread_over_documents(self, number: int) -> "ReservoirSummary":
        """Return a number of the rows: the first of every document, then the second ones."""
        if self.count <= number:
            return self
        order = np.argsort(self.documents, kind="stable")  # by document, then by hash
        _, starts, sizes = np.unique(
            self.documents[order], return_index=True, return_counts=True
        )
        turn = np.empty(self.count, dtype=np.int64)
        turn[order] = np.arange(self.count) - np.repeat(starts, sizes)
        return self._only(np.sort(np.argsort(turn, kind="stable")[:number]))

    def _only(self, kept: Array) -> "ReservoirSummary":
        if len(kept) == self.count:
            return self
        return ReservoirSummary(
            self.rows[kept], self.documents[kept], self.seen, self.independent
        )


class Reservoir(Accumulator[ReservoirSummary]):
    """The rows whose hash of (document, position) is smallest: a uniform sample that merges.

    Samples of different size do not merge into one of either.
    """

    settings = ("size",)
    saved = ("size", "hashes", "documents", "positions", "rows", "independent")
    totals = ("independent",)
    independent: bool = True

    def __init__(self, width: int, size: int = SIZE) -> None:
        super().__init__(width)
        self.size = size
        empty = np.zeros(0, dtype=np.uint64)
        self.hashes, self.documents, self.positions = empty, empty, empty
        self.kept = KeptRows(width)

    @property
    def rows(self) -> Array:
        """The kept rows, in the order of their hashes."""
        return self.kept.rows

    @rows.setter
    def rows(self, rows: Array) -> None:
        self.kept.rows = rows

    def _add(self, block: Block) -> None:
        hashes = block.members.draws
        limit = self.hashes[-1] if len(self.hashes) == self.size else None
        chosen = np.arange(len(hashes)) if limit is None else np.flatnonzero(hashes <= limit)
        if len(chosen) > self.size:
            # one more than needed, since hashes may tie and then the document decides
            bound = np.partition(hashes[chosen], self.size)[self.size]
            chosen = chosen[hashes[chosen] <= bound]
        if len(chosen):
            keys = (hashes[chosen], block.documents[chosen], block.positions[chosen])
            self._blend(keys, block.rows, chosen)
        self.independent &= block.independent

    def _absorb(self, other: Self) -> None:
        # Equal rows at one place of two files are one document: only one of them is kept.
        alone = self.independent and other.independent
        if not alone and self._has_any(other.hashes):
            raise MergeError(
                "cannot merge rows with rows of the same document and position",
                hint="give every document an id of its own, such as its file and number",
                slug="merge-same-document",
            )
        keys = (other.hashes, other.documents, other.positions)
        self._blend(keys, other.kept.room, other.kept.slots)

    def _has_any(self, hashes: Array) -> bool:
        """Whether any of these hashes is kept already; ours are in order."""
        if not len(self.hashes):
            return False
        places = np.searchsorted(self.hashes, hashes)
        return bool((self.hashes[np.minimum(places, len(self.hashes) - 1)] == hashes).any())

    def _blend(
        self, keys: tuple[Array, Array, Array], rows: Array | RowsOnDevice, where: Array
    ) -> None:
        """Keep the smallest of ours and theirs; only rows that come in are copied."""
        ours = (self.hashes, self.documents, self.positions)
        hashes, documents, positions = (
            np.concatenate(pair) for pair in zip(ours, keys, strict=True)
        )
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        if (ordered[1:] == ordered[:-1]).any():  # else they decide alone, at no cost
            order = np.lexsort((positions, documents, hashes))
            same = np.zeros(len(order), dtype=bool)  # a row that was counted twice is one row
            same[1:] = (np.diff(documents[order]) == 0) & (np.diff(positions[order]) == 0)
            order = order[~same]
        order = order[: self.size]
        self.hashes, self.documents, self.positions = (
            part[order] for part in (hashes, documents, positions)
        )
        self.kept.choose(order, rows, where, most=self.size)

    def finalize(self) -> ReservoirSummary:
        """Return the kept rows."""
        self._enough(len(self.hashes))
        return ReservoirSummary(self.rows, self.documents, self.count, self.independent)
