"""Spectra: eigenvalues of the covariance, or of the raw second moments, group by group."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from isoscope.accumulate import Accumulator, Groups, Moments, MomentsSummary, Reservoir
from isoscope.errors import UndefinedError
from isoscope.measure.view.parts import parts_of
from isoscope.measure.view.summaries import Summaries
from isoscope.types import Array


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the covariance, largest first, and each group's part in them.

    Without a group the eigenvalues are taken along the axes of the whole: exact to first
    order for any function of the spectrum, which is all an interval asks for.
    """

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Moments, Groups, Reservoir)
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
        values, vectors = decomposed(moments.covariance, rank)
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
        values, vectors = decomposed(second, rank, least=0.0)
        energy = parts.along(np.zeros(moments.width), values, vectors, n)
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


def decomposed(matrix: Array, rank: int, *, least: float = 0.0) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors; those past the rank are zero."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values[::-1], 0.0)
    values[rank:] = 0.0
    if values[0] <= least:
        raise no_spread()
    return values, vectors[:, ::-1]


def no_spread() -> UndefinedError:
    """Return the error for rows that are all alike."""
    return UndefinedError(
        "a spectrum needs rows that differ, got identical rows",
        hint="check how the vectors were made; all of them are the same",
        slug="no-spread",
    )
