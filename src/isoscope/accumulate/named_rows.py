"""The ids and texts of rows that a person may want to look at: copies, bad, zero and long rows.

Only collected where rows come with ids or texts. Which rows are kept depends on the rows
alone: of copies the first two of each, among the rows whose content hashes are smallest, as
in `Copies`; of the others the first few in their source, or the longest.
"""

from collections.abc import Mapping
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.accumulate.copies import SIZE, content_hashes
from isoscope.accumulate.sinks import as_bytes, as_text
from isoscope.accumulate.sums import RowNames
from isoscope.dataclass import dataclass
from isoscope.hashing import hash_tuples
from isoscope.types import Array

COPY, SKIPPED, ZERO, LONG = range(4)  # what is remarkable about a row
KEPT = np.array([2, 8, 8, 8])  # rows of each; of copies, for each content
ID_BYTES, TEXT_BYTES = 64, 96


@dataclass(frozen=True)
class NamedRow:
    """One row, by what its source calls it."""

    id: str
    text: str  # the beginning
    ordinal: int  # in its source, counted from 0
    norm: float  # only of long rows


@dataclass(frozen=True)
class NamedRowsSummary:
    """Some rows of each kind, in the order of their source; the longest rows first."""

    copies: tuple[tuple[NamedRow, ...], ...]  # rows that are equal, by content
    skipped: tuple[NamedRow, ...]
    zeros: tuple[NamedRow, ...]
    long: tuple[NamedRow, ...]


class NamedRows(Accumulator[NamedRowsSummary]):
    """A bounded table of remarkable rows, the same in any order."""

    least = 0
    saved = ("kinds", "contents", "ranks", "marks", "ordinals", "ids", "texts")

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.kinds = np.zeros(0, dtype=np.uint8)  # (m,) COPY to LONG
        self.contents = np.zeros(0, dtype=np.uint64)  # (m,) content hashes of copies, else 0
        self.ranks = np.zeros(0)  # (m,) ordinals; of long rows minus the norm
        self.marks, self.ordinals = (np.zeros(0, dtype=np.uint64) for _ in range(2))
        self.ids = np.zeros((0, ID_BYTES), dtype=np.uint8)
        self.texts = np.zeros((0, TEXT_BYTES), dtype=np.uint8)

    def skip(self, documents: Array, names: RowNames) -> None:
        """Note rows that were dropped because they hold NaN or infinity."""
        if len(documents):
            marks = hash_tuples(documents, names.ordinals)
            self._blend(self._table(SKIPPED, np.arange(len(documents)), marks, names))
            self.count += len(documents)

    def _add(self, block: Block) -> None:
        names = block.names
        if names is None:
            return
        marks = hash_tuples(block.documents, names.ordinals)  # tell rows of one rank apart
        hashes, squares = content_hashes(block.rows), block.squares
        known = self.contents[self.kinds == COPY]
        near = np.unique(np.concatenate([known, hashes]))[:SIZE]
        first = np.flatnonzero(hashes <= near[-1])
        # of one content at most two rows of the block are kept
        order = np.lexsort((marks[first], names.ordinals[first], hashes[first]))
        first = first[order[_rank_within(hashes[first][order]) < KEPT[COPY]]]
        self._blend(self._table(COPY, first, marks, names, contents=hashes))
        zeros = np.flatnonzero(squares == 0)
        zeros = zeros[np.lexsort((marks[zeros], names.ordinals[zeros]))][: KEPT[ZERO]]
        self._blend(self._table(ZERO, zeros, marks, names))
        norms = np.sqrt(squares)
        long = np.lexsort((marks, -norms))[: KEPT[LONG]]
        self._blend(self._table(LONG, long, marks, names, norms=norms))

    def _table(
        self,
        kind: int,
        chosen: Array,
        marks: Array,
        names: RowNames,
        *,
        contents: Array | None = None,
        norms: Array | None = None,
    ) -> dict[str, Array]:
        """Return the columns of chosen rows."""
        ordinals = names.ordinals[chosen].astype(np.uint64)
        ids, texts = names.of(chosen)
        return {
            "kinds": np.full(len(chosen), kind, dtype=np.uint8),
            "contents": np.zeros_like(ordinals) if contents is None else contents[chosen],
            "ranks": ordinals.astype(np.float64) if norms is None else -norms[chosen],
            "marks": marks[chosen],
            "ordinals": ordinals,
            "ids": as_bytes(ids, ID_BYTES),
            "texts": as_bytes(texts, TEXT_BYTES),
        }

    def _blend(self, theirs: Mapping[str, Array]) -> None:
        """Keep the first rows of each kind and content, of ours and theirs."""
        both = {
            name: np.concatenate([ours, theirs[name]]) for name, ours in self._arrays().items()
        }
        kinds, contents = both["kinds"], both["contents"]
        order = np.lexsort((both["marks"], both["ranks"], contents, kinds))
        order = order[_rank_within(kinds[order], contents[order]) < KEPT[kinds[order]]]
        copies = np.unique(contents[kinds == COPY])
        if len(copies) > SIZE:
            order = order[(kinds[order] != COPY) | (contents[order] < copies[SIZE])]
        for name, column in both.items():
            setattr(self, name, column[order])

    def _absorb(self, other: Self) -> None:
        self._blend(other._arrays())

    def finalize(self) -> NamedRowsSummary:
        """Return the rows of each kind."""
        rows = [
            NamedRow(
                id=as_text(self.ids[row]),
                text=as_text(self.texts[row]),
                ordinal=int(self.ordinals[row]),
                norm=-float(self.ranks[row]) if self.kinds[row] == LONG else 0.0,
            )
            for row in range(len(self.kinds))
        ]
        copies: dict[int, list[NamedRow]] = {}
        for row in np.flatnonzero(self.kinds == COPY):
            copies.setdefault(int(self.contents[row]), []).append(rows[row])
        equal = sorted(
            (tuple(each) for each in copies.values() if len(each) > 1),
            key=lambda each: (each[0].ordinal, each[0].id),
        )
        skipped, zeros, long = (
            tuple(rows[row] for row in np.flatnonzero(self.kinds == kind))
            for kind in (SKIPPED, ZERO, LONG)
        )
        return NamedRowsSummary(tuple(equal), skipped, zeros, long)


def _rank_within(*columns: Array) -> Array:
    """Return the number of each entry within its run of entries that are equal throughout."""
    numbers = np.arange(len(columns[0]))
    starts = np.zeros(len(numbers), dtype=bool)
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return numbers - np.maximum.accumulate(np.where(starts, numbers, 0))
