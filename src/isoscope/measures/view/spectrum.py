"""Spectra: eigenvalues of the covariance, or of the raw second moments, group by group."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from isoscope.accumulate import (
    Accumulator,
    Groups,
    Moments,
    MomentsSummary,
    Reservoir,
    ReservoirSummary,
)
from isoscope.errors import UndefinedError
from isoscope.measures.view.parts import parts_of
from isoscope.measures.view.summaries import Summaries
from isoscope.types import Array

_DOUBTFUL = 1e-5  # of the largest eigenvalue, below which one may be rounding


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the covariance, largest first, and each group's part in them.

    Without a group the eigenvalues are taken along the axes of the whole: exact to first
    order for any function of the spectrum, which is all an interval asks for.
    """

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Moments, Groups, Reservoir)
    for_intervals: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Groups,)
    values: Array  # (d,)
    rank: int  # how many of them can be more than rounding
    count: int
    documents: int
    sizes: Array  # (groups,)
    energy: Array  # (groups, d)
    keys: Array  # (groups,) which groups of documents they are
    thinning: float = 1.0

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the spectrum of the covariance."""
        moments: MomentsSummary = summaries.of(Moments)
        parts = parts_of(summaries)
        rank = min(moments.count - 1, moments.width)
        matrix, centre = moments.covariance, moments.mean
        values, vectors = eigenpairs(matrix, rank, summaries, centre, cls._spent)
        energy = parts.along(moments.mean, values, vectors, moments.count - 1)
        return cls(
            values,
            rank,
            moments.count,
            moments.documents,
            parts.sizes,
            energy,
            parts.keys,
            parts.thinning,
        )

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.values)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.sizes)

    def without(self, group: int) -> Self:
        """Return the spectrum as if a group had never been seen."""
        left = max(self.count - self.sizes[group] - self._spent, 1.0)
        whole = self.values * (self.count - self._spent)
        scatter = whole - self.energy[group]
        if scatter.max() <= whole.max() * self.width * np.finfo(np.float64).eps:
            raise no_spread()  # all of it was in that group
        return replace(self, values=np.maximum(scatter, 0.0) / left)

    _spent: ClassVar[int] = 1  # rows that the mean has used up


class RawSpectrum(Spectrum):
    """Eigenvalues of the second moments about zero: squared singular values over n."""

    _spent: ClassVar[int] = 0

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the spectrum of the second moments about zero."""
        moments: MomentsSummary = summaries.of(Moments)
        parts = parts_of(summaries)
        n = moments.count
        second = moments.whole.scatter / n + np.outer(moments.mean, moments.mean)
        rank = min(n, moments.width)
        zero = np.zeros(moments.width)
        values, vectors = eigenpairs(second, rank, summaries, zero, cls._spent)
        energy = parts.along(zero, values, vectors, n)
        return cls(
            values,
            rank,
            n,
            moments.documents,
            parts.sizes,
            energy,
            parts.keys,
            parts.thinning,
        )


def eigenpairs(
    matrix: Array, rank: int, summaries: Summaries, centre: Array, spent: int
) -> tuple[Array, Array]:
    """Return confirmed eigenvalues, largest first, and eigenvectors.

    Without intervals the vectors serve only to confirm small values. Where there are none,
    the vectors are not computed, at a third of the cost, and (d, 0) is returned.
    """
    if not summaries.intervals:
        values = _largest_first(np.linalg.eigvalsh(matrix), rank, least=0.0)
        if not len(_doubtful(values)):
            return values, np.zeros((len(values), 0))
    return confirmed(*decomposed(matrix, rank), summaries, centre, spent)


def decomposed(matrix: Array, rank: int, *, least: float = 0.0) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors; those past the rank are zero."""
    values, vectors = np.linalg.eigh(matrix)
    return _largest_first(values, rank, least=least), vectors[:, ::-1]


def _largest_first(values: Array, rank: int, *, least: float) -> Array:
    values = np.maximum(values[::-1], 0.0)
    values[rank:] = 0.0
    if values[0] <= least:
        raise no_spread()
    return values


def _doubtful(values: Array) -> Array:
    """Return which eigenvalues above zero may be rounding."""
    return np.flatnonzero((values > 0) & (values < _DOUBTFUL * values[0]))


def confirmed(
    values: Array, vectors: Array, summaries: Summaries, centre: Array, spent: int
) -> tuple[Array, Array]:
    """Return the spectrum with small eigenvalues that the sampled rows do not show put right.

    Products of float32 rows leave some 1e-8 of the largest eigenvalue in directions that no
    row has, and the root of that is no longer small: RankMe would count them. The rows
    themselves are exact, and say how far they reach in such a direction.
    """
    low = _doubtful(values)
    if not len(low):
        return values, vectors
    sample: ReservoirSummary = summaries.of(Reservoir)
    along = (sample.rows.astype(np.float64) - centre) @ vectors[:, low]
    seen, axes = np.linalg.eigh(along.T @ along / (sample.count - spent))
    seen = np.maximum(seen[::-1], 0.0)
    # A sample of a real one is nearer than half; past the first that is not, all is mixed.
    wrong = np.flatnonzero(seen < values[low] / 2)
    if not len(wrong):
        return values, vectors
    start = wrong[0]
    out, turned = values.copy(), vectors.copy()
    turned[:, low] = vectors[:, low] @ axes[:, ::-1]
    out[low[start:]] = seen[start:]
    return out, turned


def no_spread() -> UndefinedError:
    """Return the error for rows that are all alike."""
    return UndefinedError(
        "a spectrum needs rows that differ, got identical rows",
        hint="check how the vectors were made; all of them are the same",
        slug="no-spread",
    )


def effective_rows(moments: MomentsSummary) -> float:
    """Return the number of independent rows that would bias tr C^2 as much as these documents.

    With m independent rows E tr C^2 = tr S^2 (1 + 1/m) + (tr S)^2 / m. The left side is the
    plain value, the two halves of the documents estimate tr S^2 without bias, and the
    equation is solved for m. The result is at most the number of rows and at least the number
    of documents.
    """
    n = float(moments.count)
    if moments.independent:
        return n
    first, second = moments.halves
    least = float(min(max(moments.documents - 1, 2), n))
    if min(first.count, second.count) < 2:
        return least
    whole = moments.covariance
    a, b = (half.scatter / (half.count - 1) for half in (first, second))
    plain = float(np.vdot(whole, whole)) / float(np.trace(whole)) ** 2
    traces = float(np.trace(a)) * float(np.trace(b))
    if traces <= 0:
        return least
    unbiased = float(np.vdot(a, b)) / traces
    if plain <= unbiased:
        return n
    return float(np.clip((1 + unbiased) / (plain - unbiased), least, n))
