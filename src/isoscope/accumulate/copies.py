"""How many rows are exact copies of another, from the smallest hashes of their content."""

from functools import cache
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block, RowsOnDevice
from isoscope.dataclass import dataclass
from isoscope.hashing import splitmix64
from isoscope.types import Array

SIZE = 1024
_FEW = 16  # words of a row that its coarse hash looks at


@dataclass(frozen=True)
class CopiesSummary:
    """The share of rows that repeat another row bit by bit."""

    share: float
    count: int


class Copies(Accumulator[CopiesSummary]):
    """Bottom-k of content hashes with their multiplicities.

    All copies of a row share its hash, so each kept hash has its exact count, and the kept
    ones are a uniform sample of the distinct rows.
    """

    saved = ("hashes", "times")

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.hashes = np.zeros(0, dtype=np.uint64)
        self.times = np.zeros(0, dtype=np.int64)

    def _add(self, block: Block) -> None:
        limit = self.hashes[-1] if len(self.hashes) == SIZE else None
        hashes = content_hashes(block.rows, limit, most=SIZE)
        self._blend(*np.unique(hashes, return_counts=True))

    def _absorb(self, other: Self) -> None:
        self._blend(other.hashes, other.times)

    def _blend(self, hashes: Array, times: Array) -> None:
        every, where = np.unique(np.concatenate([self.hashes, hashes]), return_inverse=True)
        total = np.bincount(where, np.concatenate([self.times, times]), minlength=len(every))
        self.hashes, self.times = every[:SIZE], total[:SIZE].astype(np.int64)

    def finalize(self) -> CopiesSummary:
        """Return the share of copies."""
        self._enough(self.count)
        total = int(self.times.sum())
        return CopiesSummary((total - len(self.times)) / total, self.count)


def content_hashes(
    rows: Array | RowsOnDevice, limit: np.uint64 | None = None, *, most: int | None = None
) -> Array:
    """Hash the bits of each row, and return the hashes that do not exceed the limit.

    Of only the smallest distinct hashes, `most` of them, others may be missing as well.

    The upper half of a hash comes from a few numbers of the row, so that most rows of a
    long stream are known to exceed the limit before the rest of them is looked at. -0.0
    and 0.0 differ, which no one will miss. Bits are multiplied in words of 32: the last
    bits of a float64 are often zero, and its first ones would be lost modulo 2^64. Rows
    that live on a device (they have `columns`) come here only where they are needed.
    """
    if not isinstance(rows, np.ndarray) and rows.dtype != np.float32:
        rows = rows[np.arange(len(rows))]
    words = rows if not isinstance(rows, np.ndarray) else _words(rows)
    step = -(-words.shape[1] // _FEW)
    # every step-th word, the last first: of a float64 the first bits, not the last
    few = (
        words[:, ::-step]
        if isinstance(words, np.ndarray)
        else _words(words.columns(step))[:, ::-1]
    )
    upper = _hash_words(few) >> np.uint64(32)
    if limit is None and most is not None:
        distinct = np.unique(upper, return_counts=True)[0]  # each is of one hash or more
        limit = _all_below(distinct[most - 1]) if len(distinct) > most else None
    if limit is not None:
        near = np.flatnonzero(upper <= limit >> np.uint64(32))
        words, upper = words[near], upper[near]
    elif not isinstance(words, np.ndarray):
        words = words[np.arange(len(words))]  # an array is not copied: it may be the block
    words = _words(words)
    hashes = (upper << np.uint64(32)) | (_hash_words(words) >> np.uint64(32))
    return hashes if limit is None else hashes[hashes <= limit]


def _all_below(upper: np.uint64) -> np.uint64:
    """Return the largest hash with this upper half."""
    return (upper << np.uint64(32)) | np.uint64(2**32 - 1)


def _words(rows: Array) -> Array:
    return np.ascontiguousarray(rows).view(np.uint32)


def _hash_words(words: Array) -> Array:
    factors = _multipliers(words.shape[1])
    return splitmix64(np.einsum("ij,j->i", words, factors, dtype=np.uint64))


@cache
def _multipliers(columns: int) -> Array:
    rng = np.random.Generator(np.random.PCG64(columns))
    return rng.integers(1, 2**63, size=columns, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
