"""Concepts: the tokens whose activations reach furthest along each direction of a proxy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.accumulate.sinks import CONTEXT_BYTES, NO_TOKEN, WORD_BYTES, as_bytes, as_text
from isoscope.dataclass import dataclass
from isoscope.hashing import hash_tuples
from isoscope.types import Array

KEPT = 6  # tokens at either end of a direction
SIGNS = (1, -1)
LOWEST = 1e60  # a reach that no activation has: the place is empty
Quote = Callable[[int], tuple[str, str]]  # row to its token and the words around it


@dataclass(frozen=True)
class ConceptToken:
    """A token that reaches far along a direction, and the words around it."""

    reach: float  # of its activation from the mean, along the direction
    token: int | None
    word: str
    context: str


@dataclass(frozen=True)
class Concept:
    """One direction of a proxy: how much variance it has, and the tokens at its ends."""

    variance: float  # share of the variance of the activations
    ends: tuple[tuple[ConceptToken, ...], tuple[ConceptToken, ...]]  # positive and negative


@dataclass(frozen=True)
class Candidates:
    """Rows that reach far along one direction, of either sign."""

    reach: Array  # (n,) larger is further
    tokens: Array  # (n,)
    marks: Array  # (n,) uint64, which decides between equals
    quote: Sequence[tuple[str, str]]


class Concepts(Accumulator[tuple[Concept, ...]]):
    """The tokens furthest along each direction, each token once: the same in any order."""

    least = 0
    settings = ("basis", "centre", "variance")
    columns = ("reach", "tokens", "marks", "words", "contexts")
    saved = (*settings, *columns)

    def __init__(
        self,
        width: int,
        basis: Array | None = None,
        centre: Array | None = None,
        variance: Array | None = None,
    ) -> None:
        super().__init__(width)
        self.basis = np.eye(width, 1) if basis is None else np.asarray(basis, dtype=np.float64)
        self.centre = np.zeros(width) if centre is None else np.asarray(centre)
        self.variance = np.zeros(self.rank) if variance is None else np.asarray(variance)
        shape = (self.rank, len(SIGNS), KEPT)
        self.reach = np.full(shape, -LOWEST)
        self.tokens = np.full(shape, NO_TOKEN, dtype=np.int64)
        self.marks = np.zeros(shape, dtype=np.uint64)
        self.words = np.zeros((*shape, WORD_BYTES), dtype=np.uint8)
        self.contexts = np.zeros((*shape, CONTEXT_BYTES), dtype=np.uint8)

    @property
    def rank(self) -> int:
        """How many directions there are."""
        return self.basis.shape[1]

    def least_reach(self) -> Array:
        """Return how far a token has to reach to be kept, (directions, signs)."""
        return self.reach[:, :, -1]

    def _add(self, block: Block) -> None:
        rows = np.asarray(block.rows[np.arange(len(block))], dtype=np.float64)
        along = (rows - self.centre) @ self.basis  # (n, k)
        tokens = np.full(len(rows), NO_TOKEN) if block.tokens is None else block.tokens
        marks = hash_tuples(block.documents, block.positions)
        nothing = [("", "")] * len(rows)
        for direction in range(self.rank):
            for side, sign in enumerate(SIGNS):
                found = Candidates(sign * along[:, direction], tokens, marks, nothing)
                self.offer(direction, side, found)

    def offer(self, direction: int, side: int, found: Candidates) -> None:
        """Take in rows that may be among those that reach furthest."""
        words = [word for word, _ in found.quote]
        contexts = [context for _, context in found.quote]
        self._blend(
            direction,
            side,
            {
                "reach": np.asarray(found.reach, dtype=np.float64),
                "tokens": np.asarray(found.tokens, dtype=np.int64),
                "marks": np.asarray(found.marks, dtype=np.uint64),
                "words": as_bytes(words, WORD_BYTES),
                "contexts": as_bytes(contexts, CONTEXT_BYTES),
            },
        )

    def _blend(self, direction: int, side: int, theirs: Mapping[str, Array]) -> None:
        """Keep the furthest of ours and theirs, each token once."""
        here = (direction, side)
        both = {
            name: np.concatenate([getattr(self, name)[here], theirs[name]])
            for name in self.columns
        }
        order = np.lexsort((both["marks"], -both["reach"]))
        order = order[both["reach"][order] > -LOWEST]
        tokens = both["tokens"][order]
        _, first = np.unique(tokens, return_index=True)
        single = np.zeros(len(order), dtype=bool)
        single[first] = True
        kept = order[single | (tokens == NO_TOKEN)][:KEPT]
        for name, column in both.items():
            own = getattr(self, name)
            own[here] = -LOWEST if name == "reach" else 0
            own[(*here, slice(0, len(kept)))] = column[kept]

    def count_rows(self, rows: int) -> None:
        """Count rows that were looked at elsewhere."""
        self.count += rows

    def _absorb(self, other: Self) -> None:
        for direction in range(self.rank):
            for side in range(len(SIGNS)):
                theirs = {name: getattr(other, name)[direction, side] for name in self.columns}
                self._blend(direction, side, theirs)

    def finalize(self) -> tuple[Concept, ...]:
        """Return the directions, with the tokens at both ends."""
        return tuple(
            Concept(
                float(self.variance[direction]),
                (self._end(direction, 0), self._end(direction, 1)),
            )
            for direction in range(self.rank)
        )

    def _end(self, direction: int, side: int) -> tuple[ConceptToken, ...]:
        here = (direction, side)
        return tuple(
            ConceptToken(
                reach=SIGNS[side] * float(self.reach[here][place]),
                token=None if token == NO_TOKEN else int(token),
                word=as_text(self.words[here][place]),
                context=as_text(self.contexts[here][place]),
            )
            for place, token in enumerate(self.tokens[here])
            if self.reach[here][place] > -LOWEST
        )
