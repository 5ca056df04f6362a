"""How long rows are: moments of the norms, and quantiles from log-spaced bins."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import ByGroup, Cellwise
from isoscope.dataclass import dataclass
from isoscope.hashing import sorted_distinct
from isoscope.types import Array

ACCURACY = 0.005  # relative error of a quantile
TAIL_ROWS = 10  # rows that a tail is judged by, at least
_STEP = np.log((1 + ACCURACY) / (1 - ACCURACY))


@dataclass(frozen=True, kw_only=True)
class NormsSummary(ByGroup):
    """Moments of the norms of every group, and the bins of them all.

    The bins also count a group that has been excluded.
    """

    arrays = ("mean", "spread")
    mean: Array  # (groups,)
    spread: Array  # (groups,) sum of squares about the group's mean
    bins: Array  # (bins,) int64
    counts: Array  # (bins,)
    zeros: int

    def levels(self) -> tuple[Array, Array]:
        """Return norms and how many rows have each, to within the accuracy of the bins."""
        middle = np.exp(self.bins * _STEP) * (1 - ACCURACY)
        return np.r_[0.0, middle], np.r_[float(self.zeros), self.counts]

    def lengths(self) -> Array:
        """Return a norm for every row, in ascending order: mean and variance are exact.

        Those of the bins, moved and stretched. A bin ends at 1, so that rounding alone would
        make unit vectors one per cent longer or shorter.
        """
        norms, counts = self.levels()
        each = np.repeat(norms, counts.astype(np.int64))
        mean = float(self.sizes @ self.mean / self.sizes.sum())
        if each[0] == each[-1]:  # one bin: how they differ in it is not known
            return np.full(len(each), mean)
        squares = float(self.spread.sum() + self.sizes @ (self.mean - mean) ** 2)
        off = each - each.mean()
        return np.maximum(mean + np.sqrt(squares / (off @ off)) * off, 0.0)

    def quantile(self, share: float) -> float:
        """Return the norm that this share of the rows does not exceed."""
        norms, counts = self.levels()
        reached = np.cumsum(counts) >= max(share * counts.sum(), 1.0)
        return float(norms[int(np.argmax(reached))])

    def tail_index(self, share: float) -> float | None:
        """Return how fast the tail of the longest rows falls; None for fewer than ten rows.

        Hill (1975): one over the mean logarithm of how far these rows exceed the shortest of
        them. A tail whose index is k has moments below the k-th only.
        """
        norms, counts = self.levels()
        wanted = share * counts.sum()
        if wanted < TAIL_ROWS:
            return None
        longer = np.cumsum(counts[::-1])[::-1]  # rows at least as long as each level
        first = int(np.flatnonzero(longer >= wanted)[-1])
        if norms[first] <= 0:
            return None
        beyond = np.log(norms[first:] / norms[first]) @ counts[first:]
        return float(longer[first] / beyond) if beyond > 0 else np.inf

    def between_documents(self, pairs: float) -> tuple[float, float]:
        """Return the share of the variance of norms between documents, and its variation.

        The variation is its root over the mean norm: by how much the lengths of documents
        differ. `pairs` is the sum of their squared numbers of rows. With B between and W
        within documents the mean of n norms has the variance B pairs / n^2 + W / n, which
        groups of documents show. An estimate: the share may be above 1.
        """
        n, groups = float(self.sizes.sum()), len(self.sizes)
        mean = float(self.sizes @ self.mean) / n
        off = self.sizes * (self.mean - mean)
        total = float(self.spread.sum() + off @ (self.mean - mean)) / max(n - 1, 1.0)
        if groups < 2 or mean <= 0 or total <= 0:
            return 0.0, 0.0
        share = 1.0  # every row is a document
        if pairs > n:
            seen = float(off @ off) / n**2 * groups / (groups - 1)
            share = max((seen / total - 1 / n) / (pairs / n**2 - 1 / n), 0.0)
        return share, float(np.sqrt(share * total) / mean)


class Norms(Cellwise[NormsSummary]):
    """Mean and spread of norms, and a histogram whose bins grow by one per cent.

    Bins of fixed boundaries add up exactly in any order; sketches that choose their own
    boundaries (KLL, t-digest) do not. Masson, Rim and Lee (2019).
    """

    shapes = {"sizes": (), "mean": (), "spread": ()}  # noqa: RUF012
    saved = (*Cellwise.saved, "bins", "counts", "zeros")
    totals = (*Cellwise.totals, "zeros")
    zeros: int = 0

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.bins = np.zeros(0, dtype=np.int64)
        self.counts = np.zeros(0)

    def _add(self, block: Block) -> None:
        cells = block.cells
        norms = np.sqrt(block.squares)[cells.order]
        starts = cells.starts[:-1]
        sizes = np.diff(cells.starts).astype(np.float64)
        mean = np.add.reduceat(norms, starts) / sizes
        off = norms - np.repeat(mean, np.diff(cells.starts))
        spread = np.add.reduceat(off * off, starts)
        self._add_block(block, {"sizes": sizes, "mean": mean, "spread": spread})
        positive = norms[norms > 0]
        self.zeros += len(norms) - len(positive)
        bins, counts = np.unique(
            np.ceil(np.log(positive) / _STEP).astype(np.int64), return_counts=True
        )
        self._tally(bins, counts.astype(np.float64))

    def _tally(self, bins: Array, counts: Array) -> None:
        every = sorted_distinct(self.bins, bins)
        total = np.zeros(len(every))
        total[np.searchsorted(every, self.bins)] += self.counts
        total[np.searchsorted(every, bins)] += counts
        self.bins, self.counts = every, total

    def _pool(self, slots: Array, parts: Mapping[str, Array]) -> None:
        step, weight = self._pool_means(slots, "sizes", parts)
        self.parts["spread"][slots] += parts["spread"] + step**2 * weight

    def _absorb(self, other: Self) -> None:
        super()._absorb(other)
        self._tally(other.bins, other.counts)

    def finalize(self) -> NormsSummary:
        """Return moments by group and the bins."""
        self._enough(self.count)
        parts = {name: part.copy() for name, part in self.parts.items()}
        return NormsSummary(
            **parts,
            bins=self.bins.copy(),
            counts=self.counts.copy(),
            zeros=self.zeros,
            documents=self.documents,
            keys=self.keys.copy(),
        )
