"""Count, mean, covariance and what debiasing needs, in two halves, exact however cut."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import pairwise_weights
from isoscope.accumulate.precision import Precision
from isoscope.dataclass import dataclass
from isoscope.types import Array

_TILE = 64  # rows of a matrix that is mirrored


@dataclass
class Half:
    """Sums over rows about an origin: how many, their mean, and powers up to the fourth.

    `cubic` is the sum of |y|^2 y and `quartic` the sum of |y|^4. While blocks share an
    origin they simply add up; `centre` moves everything to the mean.
    """

    count: float
    origin: Array  # (d,)
    total: Array  # (d,) of z = x - origin
    scatter: Array  # (d, d) of z z'
    cubic: Array  # (d,)
    quartic: float

    @classmethod
    def empty(cls, width: int) -> "Half":
        """Return the neutral element."""
        zero = np.zeros(width)
        return cls(0.0, zero, zero.copy(), np.zeros((width, width)), zero.copy(), 0.0)

    def shift(self, step: Array) -> "Half":
        """Return the same sums about origin - step, so that each z becomes z + step."""
        n, z, m = self.count, self.total, self.scatter
        length, trace, pull = step @ step, np.trace(m), m @ step
        middle = z + 0.5 * n * step
        scatter = m + np.outer(step, middle)
        scatter += np.outer(middle, step)
        inner = z @ step
        cubic = self.cubic + trace * step + 2 * pull + 2 * inner * step
        cubic += length * z + n * length * step
        quartic = self.quartic + 4 * (self.cubic @ step) + 2 * length * trace
        quartic += 4 * (step @ pull) + 4 * length * inner + n * length * length
        return Half(n, self.origin - step, z + n * step, scatter, cubic, float(quartic))

    def centre(self) -> "Half":
        """Return the same sums about the mean."""
        if not self.count:
            return self
        mean = self.total / self.count
        if not mean.any():
            return self
        half = self.shift(-mean)
        half.total = np.zeros_like(mean)  # zero but for rounding
        return half

    def add(self, other: "Half") -> None:
        """Take in another half's sums; the other is left as it was."""
        if not other.count:
            return
        if not self.count:
            self.origin = other.origin
        elif self.origin is not other.origin and (self.origin != other.origin).any():
            mine, other = self.centre(), other.centre()
            share, _ = pairwise_weights(mine.count, other.count)
            step = (other.origin - mine.origin) * share
            mine = mine.shift(-step)
            other = other.shift(other.origin - mine.origin)
            vars(self).update(vars(mine))
        self.count += other.count
        self.total = self.total + other.total
        self.scatter += other.scatter
        self.cubic = self.cubic + other.cubic
        self.quartic += other.quartic


def pack(matrix: Array) -> Array:
    """Return the upper triangle of a symmetric matrix, row by row.

    >>> pack(np.array([[1, 2], [2, 3]])).tolist()
    [1, 2, 3]
    """
    return np.concatenate([row[start:] for start, row in enumerate(matrix)])


def unpack(packed: Array, width: int) -> Array:
    """Return the symmetric matrix whose upper triangle is packed, float64.

    >>> unpack(np.array([1, 2, 3]), 2).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    matrix = np.empty((width, width))
    begin = 0
    for start in range(width):
        end = begin + width - start
        matrix[start, start:] = packed[begin:end]
        begin = end
    for start in range(0, width, _TILE):  # mirrored a tile at a time, which stays in the cache
        stop = min(start + _TILE, width)
        tile = matrix[start:stop, start:stop]
        tile[:] = np.triu(tile) + np.triu(tile, 1).T
        matrix[stop:, start:stop] = matrix[start:stop, stop:].T
    return matrix


@dataclass(frozen=True)
class MomentsSummary:
    """What `Moments` knows once the stream has ended; halves are centred."""

    halves: tuple[Half, Half]
    whole: Half
    documents: int
    independent: bool

    @property
    def count(self) -> int:
        """How many rows were seen."""
        return int(self.whole.count)

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.whole.origin)

    @property
    def mean(self) -> Array:
        """The mean row."""
        return self.whole.origin

    @property
    def covariance(self) -> Array:
        """The covariance, divided by count - 1."""
        return self.whole.scatter / (self.whole.count - 1)


class Moments(Accumulator[MomentsSummary]):
    """First to fourth moments, kept as sums about the mean of each half.

    A document belongs to half 0 or 1 by its key, so that products of the two halves never
    pair a document with itself: that is what makes the debiased readings possible.
    Pairwise update: Chan, Golub and LeVeque (1983), with the terms of higher order.
    """

    least = 2
    saved = totals = ("documents", "independent")
    documents: int = 0
    independent: bool = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.halves = (Half.empty(width), Half.empty(width))
        self._precision = Precision()

    def _add(self, block: Block) -> None:
        sums, cells = block.sums, block.cells
        before = [(half.count, half.total, half.scatter) for half in self.halves]
        summed = self._precision.sum_halves(block, before)
        for half, (total, scatter) in enumerate(summed):
            here = cells.halves == half
            if here.any():
                part = Half(
                    float(sums.count[here].sum()),
                    block.origin,
                    total,
                    scatter,
                    sums.cubic[here].sum(axis=0),
                    float(sums.quartic[here].sum()),
                )
                self.halves[half].add(part)
        self.documents += len(block.members.runs) - 1
        self.independent &= block.independent

    def _settle(self) -> None:
        """Add what scatters still miss, before they are looked at."""
        self._precision.settle([half.scatter for half in self.halves])

    def _absorb(self, other: Self) -> None:
        self._settle()
        other._settle()
        for ours, theirs in zip(self.halves, other.halves, strict=True):
            ours.add(theirs)

    def _arrays(self) -> dict[str, Array]:
        self._settle()
        halves = [half.centre() for half in self.halves]
        return {
            "rows": np.array([half.count for half in halves]),
            "mean": np.stack([half.origin.astype(np.float64) for half in halves]),
            "scatter": np.stack([pack(half.scatter) for half in halves]),
            "cubic": np.stack([half.cubic for half in halves]),
            "quartic": np.array([half.quartic for half in halves]),
            **super()._arrays(),
        }

    def _restore(self, state: Mapping[str, Array]) -> None:
        super()._restore(state)
        for half, ours in enumerate(self.halves):
            ours.count = float(state["rows"][half])
            ours.origin = np.array(state["mean"][half], dtype=np.float64)
            ours.scatter = unpack(state["scatter"][half], self.width)
            ours.cubic = np.array(state["cubic"][half], dtype=np.float64)
            ours.quartic = float(state["quartic"][half])

    def finalize(self) -> MomentsSummary:
        """Return the halves and the whole, centred."""
        self._enough(self.count)
        self._settle()
        first, second = (half.centre() for half in self.halves)
        whole = Half.empty(self.width)
        whole.add(first)
        whole.add(second)
        return MomentsSummary((first, second), whole.centre(), self.documents, self.independent)
