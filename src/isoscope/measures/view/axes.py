"""Principal axes of all rows and of each half of the documents, decomposed once."""

from threading import Lock
from typing import ClassVar, Self

import numpy as np

from isoscope.accumulate import Moments, MomentsSummary
from isoscope.errors import UndefinedError
from isoscope.measures.view.outer import add_outer
from isoscope.measures.view.summaries import Summaries, View
from isoscope.types import Array

Decomposition = tuple[Array, Array]  # eigenvalues, (d,), and eigenvectors, (d, d), ascending


class Axes(View):
    """Axes of the covariance, and with them those of the second moments about zero.

    A decomposition is kept while both are to come, and made again where they are needed
    after that: vectors are the largest thing that is made of a site.
    """

    needs = (Moments,)
    _half: ClassVar[int | None] = None  # of the documents; None: all of them

    def __init__(self, moments: MomentsSummary, *, vectors: bool, both: bool) -> None:
        self._sums = moments.whole if self._half is None else moments.halves[self._half]
        self._with_vectors = vectors
        self._to_come = {False, True} if both else set[bool]()
        self._decomposing = Lock()
        self._kept: Decomposition | None = None

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the axes; nothing is decomposed yet."""
        vectors, both = summaries.intervals, summaries.both_spectra
        return cls(summaries.of(Moments), vectors=vectors, both=both)

    @property
    def count(self) -> int:
        """How many rows they rest on."""
        return int(self._sums.count)

    def pairs(self, *, about_zero: bool) -> Decomposition:
        """Return eigenvalues and eigenvectors in ascending order, about the mean or zero.

        Without intervals nobody needs vectors, (d, 0): values alone take a third of the time.
        """
        n, mean = self._sums.count, self._sums.origin
        if not self._with_vectors:
            matrix = self._sums.scatter / (n - 1)
            if about_zero:
                matrix = self._sums.scatter / n + np.outer(mean, mean)
            return np.linalg.eigvalsh(matrix), np.zeros((len(mean), 0))
        values, vectors = self._decompose(about_zero)
        if not about_zero:
            return values, vectors
        return add_outer(values * ((n - 1) / n), vectors, mean)

    def _decompose(self, about_zero: bool) -> Decomposition:
        """Return what the covariance is decomposed into."""
        with self._decomposing:
            found = self._kept or decompose(self._sums.scatter / (self._sums.count - 1))
            self._to_come.discard(about_zero)
            self._kept = found if self._to_come else None
        return found


class FirstHalfAxes(Axes):
    """Those of the first half."""

    _half: ClassVar[int | None] = 0


class SecondHalfAxes(Axes):
    """Those of the second half."""

    _half: ClassVar[int | None] = 1


AXES: dict[int | None, type[Axes]] = {None: Axes, 0: FirstHalfAxes, 1: SecondHalfAxes}


def decompose(matrix: Array) -> Decomposition:
    """Return eigenvalues and eigenvectors of a symmetric matrix, in ascending order."""
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors


def nonzero_values(values: Array, rank: int) -> Array:
    """Return ascending eigenvalues; those past the rank or below zero are zero."""
    values = np.maximum(values, 0.0)
    values[: len(values) - rank] = 0.0
    if values[-1] <= 0:
        raise no_spread()
    return values


def no_spread() -> UndefinedError:
    """Return the error for rows that are all alike."""
    return UndefinedError(
        "a spectrum needs rows that differ, got identical rows",
        hint="check how the vectors were made; all of them are the same",
        slug="no-spread",
    )
