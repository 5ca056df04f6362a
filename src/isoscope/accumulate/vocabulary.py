"""Token types: where the occurrences of each point, of a fixed number of types.

Types are kept in the order of a hash of their id, the smallest first. A type that has been
driven out never comes back, since the types that drove it out stay before it; and a type
that is kept in the end was kept from its first occurrence on, in every part that has seen
it. So the sums of the kept types are exact, whatever the order and the cuts, and memory does
not grow with the vocabulary.
"""

from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block, RowsOnDevice
from isoscope.accumulate.kept_rows import KeptRows
from isoscope.accumulate.sums import TokenTypes
from isoscope.dataclass import dataclass
from isoscope.types import Array

TYPES = 1024  # whose unit vectors are summed
SAMPLED = 256  # of these, of which some occurrences are kept as they are
KEPT = 16  # occurrences of each of those
_EVERY = 2.0**64
_SOME = 64  # sums that are added to at once: as many as stay in the cache


@dataclass(frozen=True)
class VocabularySummary:
    """The kept types, in the order of their hashes, and occurrences of the first of them."""

    tokens: Array  # (types,) ids
    hashes: Array  # (types,) uint64
    nonzero: Array  # (types,) occurrences that have a direction
    units: Array  # (types, d) sum of their unit vectors
    owners: Array  # (m,) number of the type of each kept occurrence
    rows: Array  # (m, d) kept occurrences
    vocabulary: int  # types there are, an estimate where not all were kept
    count: int  # rows of all types

    @property
    def complete(self) -> bool:
        """Whether every type there is was kept."""
        return self.vocabulary <= len(self.tokens)


class Vocabulary(Accumulator[VocabularySummary]):
    """Sums of unit vectors by token type, and a few whole occurrences of some types.

    Samples of different size do not merge into one of either.
    """

    by_token = True
    settings = ("sizes",)
    saved = ("sizes", "hashes", "tokens", "nonzero", "units", "owners", "draws", "rows")

    def __init__(
        self, width: int, types: int = TYPES, sampled: int = SAMPLED, kept: int = KEPT
    ) -> None:
        super().__init__(width)
        self.sizes = (types, min(sampled, types), kept)
        empty = np.zeros(0, dtype=np.uint64)
        self.hashes = empty
        self.tokens = np.zeros(0, dtype=np.int64)
        self.nonzero = np.zeros(0)
        self._sums = np.zeros((0, width))  # of unit vectors, each type at its own place
        self._places = np.zeros(0, dtype=np.int64)  # (types,) where among the sums
        self.owners, self.draws = empty, empty  # type and occurrence of each kept row, hashed
        self.kept = KeptRows(width)

    @property
    def rows(self) -> Array:
        """The kept occurrences, (m, d), in the order of their owners and draws."""
        return self.kept.rows

    @rows.setter
    def rows(self, rows: Array) -> None:
        self.kept.rows = rows

    @property
    def units(self) -> Array:
        """The sums of unit vectors, (types, d), in the order of the hashes."""
        return self._sums[self._places]

    @units.setter
    def units(self, sums: Array) -> None:
        self._sums, self._places = sums, np.arange(len(sums))

    def _add(self, block: Block) -> None:
        if block.tokens is None:
            return
        types = block.members.types
        # The types of the block that will be kept, and the rows that are of one of them.
        near = np.flatnonzero(types.hashes <= self._kept_with(types.hashes)[-1])
        number = np.full(len(types.hashes), -1)  # (types of the block,)
        number[near] = np.arange(len(near))
        labels = number[types.where]  # (n,) number of the type of each row, or -1
        chosen = np.flatnonzero(labels >= 0)
        if not len(chosen):
            return
        # (near, d) and (near,)
        units, nonzero = block.unit_sums(chosen, labels[chosen], len(near))
        self._blend_types(types.hashes[near], types.tokens[near], nonzero, units)
        self._draw(block, types)

    def _draw(self, block: Block, types: TokenTypes) -> None:
        """Keep the occurrences whose hash is smallest, of each of the first types."""
        sampled, kept = self.sizes[1:]
        last = self.hashes[:sampled][-1]  # of the types whose occurrences are kept
        chosen = np.flatnonzero((types.hashes <= last)[types.where])
        owners = types.hashes[types.where[chosen]]  # (chosen,) as are the draws
        draws = block.members.draws[chosen]
        # The smallest draws of each type in this block, and of these the ones that beat ours.
        here = _first_of_each(owners, draws, kept)
        here = here[draws[here] < self._bounds(owners[here])]
        driven_out = len(self.owners) > 0 and self.owners[-1] > last
        if len(here) or driven_out:
            self._blend_rows(owners[here], draws[here], block.rows, chosen[here])

    def _bounds(self, owners: Array) -> Array:
        """Return for each owner the hash that its occurrences must stay below."""
        kept = self.sizes[2]
        last = np.full(len(owners), np.iinfo(np.uint64).max, dtype=np.uint64)
        # Our occurrences are sorted by owner and draw: those of one owner end at `ends`.
        ends = np.searchsorted(self.owners, owners, side="right")
        full = ends - np.searchsorted(self.owners, owners) == kept
        last[full] = self.draws[ends[full] - 1]
        return last

    def _kept_with(self, hashes: Array) -> Array:
        """Return the types that are kept of ours and of others, in order."""
        every = np.sort(np.concatenate([self.hashes, hashes]))
        fresh = np.ones(len(every), dtype=bool)
        np.not_equal(every[1:], every[:-1], out=fresh[1:])
        return every[fresh][: self.sizes[0]]

    def _blend_types(self, hashes: Array, tokens: Array, nonzero: Array, units: Array) -> None:
        every = self._kept_with(hashes)
        if not np.array_equal(every, self.hashes):
            self._rearrange(every)
        here = np.flatnonzero(hashes <= every[-1])  # of theirs, those that are kept
        slots = np.searchsorted(every, hashes[here])  # their places among ours
        self.tokens[slots] = tokens[here]
        self.nonzero[slots] += nonzero[here]
        places = self._places[slots]
        for start in range(0, len(here), _SOME):
            part = slice(start, start + _SOME)
            self._sums[places[part]] += units[here[part]]

    def _rearrange(self, hashes: Array) -> None:
        """Make room for these types, and forget the types that are not among them.

        Sums stay where they are, since the kept types change with nearly every block; a new
        type takes the place of a forgotten one.
        """
        stay = np.isin(self.hashes, hashes, assume_unique=True)
        slots = np.searchsorted(hashes, self.hashes[stay])
        known = np.zeros(len(hashes), dtype=bool)
        known[slots] = True
        tokens, nonzero = np.zeros(len(hashes), dtype=np.int64), np.zeros(len(hashes))
        tokens[slots], nonzero[slots] = self.tokens[stay], self.nonzero[stay]
        if len(hashes) > len(self._sums):  # twice as many, or as many as there may be
            size = min(max(2 * len(self._sums), len(hashes)), self.sizes[0])
            more = np.zeros((size - len(self._sums), self.width))
            self._sums = np.concatenate([self._sums, more])
        places = np.zeros(len(hashes), dtype=np.int64)
        places[slots] = self._places[stay]
        free = np.setdiff1d(np.arange(len(self._sums)), places[slots], assume_unique=True)
        places[~known] = free[: len(hashes) - len(slots)]
        self._sums[places[~known]] = 0.0
        self.hashes, self.tokens, self.nonzero = hashes, tokens, nonzero
        self._places = places

    def _blend_rows(
        self, owners: Array, draws: Array, rows: Array | RowsOnDevice, where: Array
    ) -> None:
        """Keep the first occurrences of ours and theirs; only rows that come in are copied."""
        owners = np.concatenate([self.owners, owners])  # (m,) of kept rows and new ones
        draws = np.concatenate([self.draws, draws])
        order = _first_of_each(owners, draws, self.sizes[2])
        order = order[owners[order] <= self.hashes[: self.sizes[1]][-1]]
        self.owners, self.draws = owners[order], draws[order]
        _, sampled, kept = self.sizes
        self.kept.choose(order, rows, where, most=sampled * kept)

    def _absorb(self, other: Self) -> None:
        if len(other.hashes):
            self._blend_types(other.hashes, other.tokens, other.nonzero, other.units)
            kept = other.kept
            self._blend_rows(other.owners, other.draws, kept.room, kept.slots)

    def finalize(self) -> VocabularySummary:
        """Return the kept types."""
        self._enough(len(self.hashes))
        known = len(self.hashes)
        if known == self.sizes[0]:  # the kept types lie evenly below the last one's hash
            known = max(known, round((known - 1) * _EVERY / float(self.hashes[-1])))
        return VocabularySummary(
            tokens=self.tokens.copy(),
            hashes=self.hashes.copy(),
            nonzero=self.nonzero.copy(),
            units=self.units,
            owners=np.searchsorted(self.hashes, self.owners),
            rows=self.rows,
            vocabulary=known,
            count=self.count,
        )


def _first_of_each(owners: Array, draws: Array, kept: int) -> Array:
    """Return which entries are the smallest draws of their owner, in order of both."""
    order = np.lexsort((draws, owners))
    ordered = owners[order]
    starts = np.searchsorted(ordered, ordered)
    return order[np.arange(len(order)) - starts < kept]
