"""How alike rows are that follow one another in a file, beside rows at random."""

from math import sqrt

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.dataclass import dataclass
from isoscope.hashing import splitmix64
from isoscope.types import Array

FIRST = 2048  # pairs of a file that all count; of later ones one in 32
_SHARE = np.uint64(32)
_PART = 512  # pairs at once, so that they stay in the cache


@dataclass(frozen=True)
class AdjacentSummary:
    """Cosines of neighbouring rows, and of all rows that were looked at."""

    pairs: int
    near: float  # mean cosine of neighbours
    spread: float  # standard deviation of these cosines
    far: float  # mean cosine over all pairs of the same rows

    @property
    def likeness(self) -> float:
        """How far neighbours are on the way from random rows (0) to equal ones (1)."""
        return (self.near - self.far) / (1 - self.far) if self.far < 1 else 0.0

    @property
    def errors(self) -> float:
        """By how many standard errors neighbours are more alike than random rows."""
        error = self.spread / sqrt(self.pairs)
        return (self.near - self.far) / error if error else 0.0


class Adjacent(Accumulator[AdjacentSummary]):
    """Sums over pairs of rows 2k and 2k + 1 of a file.

    Which pairs count depends on their ordinals alone; one that is cut in two by the end of
    a block does not. Nothing is summed where blocks do not know ordinals.
    """

    least = 2
    pairs: int = 0
    near: float = 0.0  # sum of cosines
    squares: float = 0.0  # sum of their squares
    saved = ("pairs", "near", "squares", "units")
    totals = ("pairs", "near", "squares", "units")

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.units = np.zeros(width)  # (d,) sum of the unit vectors of both rows

    def _add(self, block: Block) -> None:
        if block.members.ordinals is None:
            return
        first = _pairs(block.members.ordinals)
        squares = block.squares
        first = first[(squares[first] > 0) & (squares[first + 1] > 0)]
        for start in range(0, len(first), _PART):
            here = first[start : start + _PART]
            one, other = (
                block.rows[each] / np.sqrt(squares[each])[:, None] for each in (here, here + 1)
            )
            cosines = np.vecdot(one, other)
            self.near += float(cosines.sum())
            self.squares += float(cosines @ cosines)
            self.units = self.units + one.sum(axis=0) + other.sum(axis=0)
        self.pairs += len(first)

    def finalize(self) -> AdjacentSummary:
        """Return means over the pairs."""
        self._enough(self.pairs)
        near = self.near / self.pairs
        spread = sqrt(max(self.squares / self.pairs - near**2, 0.0))
        whole = float(self.units @ self.units)
        far = float(cosine_over_pairs(whole, 2.0 * self.pairs))
        return AdjacentSummary(self.pairs, near, spread, far)


def _pairs(ordinals: Array) -> Array:
    """Return the rows that begin a pair which counts."""
    ordinals = ordinals.astype(np.uint64)
    begins = ordinals[:-1] % np.uint64(2) == 0
    begins &= ordinals[1:] == ordinals[:-1] + np.uint64(1)
    pair = ordinals[:-1] // np.uint64(2)
    begins &= (pair < FIRST) | (splitmix64(pair) % _SHARE == 0)
    return np.flatnonzero(begins)
