"""Neighbourhoods of token types: some occurrences of chosen types, one of each document.

Of every type the documents are kept whose occurrence has the smallest hash, up to a fixed
number. Rows of different documents are independent draws of a type, so that a value without
the documents of one group is a value without its rows; and all types have the same number of
rows, so that what a small sample does to a value it does to all of them alike.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block, RowsOnDevice
from isoscope.accumulate.kept_rows import KeptRows
from isoscope.dataclass import dataclass
from isoscope.types import Array

KEPT = 32  # documents of each type


@dataclass(frozen=True)
class NeighbourhoodsSummary:
    """Kept occurrences, in the order of their types and hashes."""

    types: Array  # (types,) ids, ascending
    owners: Array  # (m,) number of the type of each occurrence
    documents: Array  # (m,) keys
    rows: Array  # (m, d)
    kept: int  # documents of each type at most

    def complete(self) -> tuple[Array, Array, Array]:
        """Return the types that have all occurrences: ids, documents and rows.

        (types,), (types, kept) and (types, kept, d).
        """
        full = np.bincount(self.owners, minlength=len(self.types)) == self.kept
        chosen = full[self.owners]
        shape = (int(full.sum()), self.kept)
        return (
            self.types[full],
            self.documents[chosen].reshape(shape),
            self.rows[chosen].reshape(*shape, self.rows.shape[1]),
        )


class Neighbourhoods(Accumulator[NeighbourhoodsSummary]):
    """A bounded sample of the occurrences of chosen types, the same in any order."""

    by_token = True
    least = 0
    settings = ("types", "kept")
    saved = ("types", "kept", "owners", "documents", "draws", "rows")

    def __init__(self, width: int, types: Sequence[int] | Array = (), kept: int = KEPT) -> None:
        super().__init__(width)
        self.types = np.unique(np.asarray(types, dtype=np.int64))
        self.kept = kept
        empty = np.zeros(0, dtype=np.uint64)
        self.owners = np.zeros(0, dtype=np.int64)  # (m,) number of the type of each row
        self.documents, self.draws = empty, empty  # (m,) keys, and hashes of occurrences
        self._room = KeptRows(width)

    @property
    def rows(self) -> Array:
        """The kept occurrences, (m, d), in the order of their types and draws."""
        return self._room.rows

    @rows.setter
    def rows(self, rows: Array) -> None:
        self._room.rows = rows

    def _add(self, block: Block) -> None:
        if block.tokens is None or not len(self.types):
            return
        owners = np.searchsorted(self.types, block.tokens)
        known = self.types[np.minimum(owners, len(self.types) - 1)] == block.tokens
        chosen = np.flatnonzero(known)
        if not len(chosen):
            return
        owners, documents = owners[chosen], block.documents[chosen]
        draws = block.members.draws[chosen]
        here = _first_of_each(owners, documents, draws, self.kept)
        # of these the ones that come before the last of ours
        here = here[draws[here] < self._bounds(owners[here])]
        if len(here):
            self._blend(owners[here], documents[here], draws[here], block.rows, chosen[here])

    def _bounds(self, owners: Array) -> Array:
        """Return for each type the hash that its occurrences must stay below."""
        last = np.full(len(owners), np.iinfo(np.uint64).max, dtype=np.uint64)
        ends = np.searchsorted(self.owners, owners, side="right")
        full = ends - np.searchsorted(self.owners, owners) == self.kept
        last[full] = self.draws[ends[full] - 1]
        return last

    def _blend(
        self,
        owners: Array,
        documents: Array,
        draws: Array,
        rows: Array | RowsOnDevice,
        where: Array,
    ) -> None:
        """Keep the first documents of each type, of ours and theirs."""
        owners = np.concatenate([self.owners, owners])
        documents = np.concatenate([self.documents, documents])
        draws = np.concatenate([self.draws, draws])
        order = _first_of_each(owners, documents, draws, self.kept)
        self.owners, self.documents = owners[order], documents[order]
        self.draws = draws[order]
        self._room.choose(order, rows, where, most=len(self.types) * self.kept)

    def _absorb(self, other: Self) -> None:
        if len(other.owners):
            room = other._room
            self._blend(other.owners, other.documents, other.draws, room.room, room.slots)

    def finalize(self) -> NeighbourhoodsSummary:
        """Return the kept occurrences."""
        return NeighbourhoodsSummary(
            self.types.copy(), self.owners.copy(), self.documents.copy(), self.rows, self.kept
        )


def _first_of_each(owners: Array, documents: Array, draws: Array, kept: int) -> Array:
    """Return which entries have the smallest draws of their owner, one of each document.

    In the order of owners and draws.
    """
    order = np.lexsort((draws, documents, owners))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (owners[order][1:] != owners[order][:-1]) | (
        documents[order][1:] != documents[order][:-1]
    )
    order = order[first]
    order = order[np.lexsort((draws[order], owners[order]))]
    ordered = owners[order]
    return order[np.arange(len(order)) - np.searchsorted(ordered, ordered) < kept]
