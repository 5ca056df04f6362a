"""Each group's part in the second moments: from sketches, or from the sample of rows.

Rows in documents hang together, so that only sums over whole documents tell how far a
reading may be off: their groups are kept in sketch. Independent rows need no such sums: a
sample of them tells the same, exactly and at no cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from isoscope.accumulate import (
    Groups,
    GroupsSummary,
    Moments,
    MomentsSummary,
    Reservoir,
    ReservoirSummary,
)
from isoscope.measures.view.energy import along, crossed
from isoscope.measures.view.summaries import Summaries
from isoscope.types import Array


@dataclass(frozen=True)
class SketchedParts:
    """Groups of documents, whose scatters are known by their sketches."""

    groups: GroupsSummary
    thinning: float = 1.0

    @property
    def sizes(self) -> Array:
        """Rows in each group."""
        return self.groups.rows

    @property
    def keys(self) -> Array:
        """Which groups of documents they are."""
        return self.groups.keys

    def along(self, centre: Array, values: Array, vectors: Array, rows: float) -> Array:
        """Return each group's second moment along each eigenvector, (groups, d)."""
        return calibrated(along(self.groups, centre, values, vectors), values * rows)

    def within(self, half: int, centre: Array) -> tuple[Array, Array]:
        """Return rows and scatter traces of the groups of a half."""
        here = self.groups.halves == half
        step = self.groups.mean[here] - centre
        rows = self.groups.rows[here]
        return rows, self.groups.trace[here] + rows * np.einsum("kd,kd->k", step, step)

    def crossed(self, half: int, centre: Array, other: Array) -> Array:
        """Return tr(T_k C) for the groups k of a half, C the covariance of the other."""
        return crossed(self.groups, self.groups.halves == half, centre, other)


@dataclass(frozen=True)
class SampledParts:
    """Groups of sampled rows, standing for groups of all rows."""

    sample: ReservoirSummary
    moments: MomentsSummary

    @property
    def keys(self) -> Array:
        """Which groups of rows they are."""
        return self.sample.keys

    @property
    def scale(self) -> float:
        """How many rows each sampled one stands for."""
        return self.moments.count / self.sample.count

    @property
    def sizes(self) -> Array:
        """Rows in each group, of all rows."""
        return np.bincount(self.sample.cells) * self.scale

    @property
    def thinning(self) -> float:
        """All rows know more than the sample by the root of their number.

        Unless the sample has missed the longest of them: the sum of fourth powers, which
        is known of all rows, tells.
        """
        told = sum(
            float(np.square(np.vecdot(rows, rows)).sum())
            for rows, _ in self._by_cell(self.moments.mean)
        )
        told *= self.scale
        missed = self.moments.whole.quartic / told if told > 0 else 1.0
        return sqrt(max(missed, 1.0) / self.scale)

    def along(self, centre: Array, values: Array, vectors: Array, rows: float) -> Array:
        """Return each group's second moment along each eigenvector, (groups, d)."""
        energy = [
            np.square(turned, out=turned).sum(axis=0)
            for turned in (part @ vectors for part, _ in self._by_cell(centre))
        ]
        return calibrated(np.array(energy), values * rows)

    def fourths(self) -> Array:
        """Return sums over each group's sampled rows y, about the mean of all.

        One line a group: how many, sum of |y|^2, sum of y' M y with M the scatter of all
        rows, sum of (y . y')^2 over pairs of the group, sum of |y|^4.
        """
        scatter = self.moments.whole.scatter
        out: list[tuple[float, ...]] = []
        for rows, count in self._by_cell(self.moments.mean):
            r = np.vecdot(rows, rows)
            pull = np.vecdot(rows, rows @ scatter).sum()
            own = np.square(rows @ rows.T).sum()
            out.append((count, r.sum(), pull, own, np.square(r).sum()))
        return np.array(out)

    def _by_cell(self, centre: Array) -> Iterator[tuple[Array, int]]:
        """Yield each group's sampled rows about a centre, in float64: all at once are many."""
        for cell in range(int(self.sample.cells.max()) + 1):
            rows = self.sample.rows[self.sample.cells == cell] - centre
            yield rows, len(rows)


@dataclass(frozen=True)
class NoParts:
    """No groups: a value alone is computed, without an interval."""

    thinning: float = 1.0

    @property
    def sizes(self) -> Array:
        """Rows in each group."""
        return np.zeros(0)

    @property
    def keys(self) -> Array:
        """Which groups they are."""
        return np.zeros(0, dtype=np.uint64)

    def along(self, centre: Array, values: Array, vectors: Array, rows: float) -> Array:
        """Return each group's second moment along each eigenvector, (0, d)."""
        _ = centre, vectors, rows
        return np.zeros((0, len(values)))


Parts = SketchedParts | SampledParts | NoParts


def parts_of(summaries: Summaries) -> Parts:
    """Return the parts of rows in documents, or of independent rows."""
    if not summaries.intervals:
        return NoParts()
    moments: MomentsSummary = summaries.of(Moments)
    if moments.independent:
        return SampledParts(summaries.of(Reservoir), moments)
    return SketchedParts(summaries.of(Groups))


def calibrated(parts: Array, known: Array) -> Array:
    """Return the parts of each group scaled so that they add up to what is known exactly.

    Sketches err alike in all groups; what they share in error cancels here.
    """
    told = parts.sum(axis=0)
    return parts * np.divide(known, told, out=np.zeros_like(told), where=told > 0)
