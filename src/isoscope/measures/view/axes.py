"""Principal axes of all rows and of each half of the documents, decomposed once.

What is kept of them are eigenvalues and each group's second moment along the axes; vectors,
the largest thing that is made of a site, are let go at once.
"""

from collections.abc import Iterable
from threading import Lock
from typing import ClassVar, Self

import numpy as np

from isoscope.accumulate import Groups, Moments, MomentsSummary, Reservoir
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.view.outer import decompose_sum
from isoscope.measures.view.parts import Parts, PrincipalAxes, calibrate, parts_of
from isoscope.measures.view.summaries import Summaries, View
from isoscope.types import Array


@dataclass(frozen=True)
class AlongAxes:
    """Second moments along the axes, largest first."""

    values: Array  # (d,)
    rank: int  # how many of them can be more than rounding
    energy: Array  # (groups, d), of no groups where no interval is made
    shown: Array  # (groups, d), as sketches or sampled rows show it


class Axes(View):
    """Second moments of all rows along their axes: about the mean, and about zero.

    Those that are to be read are made at once, of one decomposition; one that is asked for
    later takes another.
    """

    needs = (Moments, Groups, Reservoir)
    for_intervals = (Groups, Reservoir)
    _half: ClassVar[int | None] = None  # of the documents; None: all of them

    def __init__(self, summaries: Summaries) -> None:
        moments = summaries.of(Moments)
        if self._half is not None:
            refuse_few_rows(moments)
        self._sums = moments.whole if self._half is None else moments.halves[self._half]
        self._parts: Parts | None = parts_of(summaries)
        self._making = Lock()
        self._made: dict[bool, AlongAxes] = {}
        if self._parts is not None and summaries.spectra:
            self._made = self._decompose(self._parts, summaries.spectra)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the axes of all rows, or of the half that they are of."""
        return cls(summaries)

    @property
    def count(self) -> int:
        """How many rows they rest on."""
        return int(self._sums.count)

    @property
    def mine(self) -> Array | None:
        """Which groups they are of; None: all. Documents are dealt to halves by their keys."""
        if self._half is None or self._parts is None:
            return None
        return self._parts.keys % np.uint64(2) == self._half

    def along(self, *, about_zero: bool) -> AlongAxes:
        """Return second moments about zero or about the mean; raise where there are none."""
        with self._making:
            if about_zero not in self._made:
                if self._parts is None:
                    self._made[about_zero] = self._values_alone(about_zero)
                else:
                    self._made |= self._decompose(self._parts, {about_zero})
            found = self._made[about_zero]
        if not found.values[0] > 0:
            raise no_spread()
        return found

    def _rank(self, about_zero: bool) -> int:
        return min(self.count - (not about_zero), len(self._sums.origin))

    def _values_alone(self, about_zero: bool) -> AlongAxes:
        """Return eigenvalues without vectors, which take a third of the time."""
        n, mean, rank = self._sums.count, self._sums.origin, self._rank(about_zero)
        matrix = self._sums.scatter / (n if about_zero else n - 1)
        if about_zero:
            matrix += np.outer(mean, mean)
        values = nonzero_values(np.linalg.eigvalsh(matrix), rank)
        nothing = np.zeros((0, len(values)))
        return AlongAxes(values[::-1].copy(), rank, nothing, nothing)

    def _decompose(self, parts: Parts, about: Iterable[bool]) -> dict[bool, AlongAxes]:
        """Return those about zero or the mean, or both of them."""
        n, mean = self._sums.count, self._sums.origin
        own, vectors = np.linalg.eigh(self._sums.scatter / (n - 1))
        found, turn = {False: own}, np.zeros((0, 0))
        if True in about:
            found[True], turn = decompose_sum(own * ((n - 1) / n), mean @ vectors)
        values = {each: nonzero_values(found[each], self._rank(each)) for each in about}
        shown = parts.along(PrincipalAxes(mean, vectors, values, turn), self.mine)
        return {
            each: self._largest_first(values[each], shown[each], about_zero=each)
            for each in about
        }

    def _largest_first(self, values: Array, shown: Array, *, about_zero: bool) -> AlongAxes:
        values, shown = values[::-1].copy(), np.ascontiguousarray(shown[:, ::-1])
        whole = values * (self.count - (not about_zero))
        return AlongAxes(values, self._rank(about_zero), calibrate(shown, whole), shown)


class FirstHalfAxes(Axes):
    """Those of the first half."""

    _half: ClassVar[int | None] = 0


class SecondHalfAxes(Axes):
    """Those of the second half."""

    _half: ClassVar[int | None] = 1


AXES: dict[int | None, type[Axes]] = {None: Axes, 0: FirstHalfAxes, 1: SecondHalfAxes}


def nonzero_values(values: Array, rank: int) -> Array:
    """Return ascending eigenvalues; those past the rank or below zero are zero."""
    values = np.maximum(values, 0.0)
    values[: len(values) - rank] = 0.0
    return values


def refuse_few_rows(moments: MomentsSummary) -> None:
    """Raise where a half has no covariance."""
    first, second = moments.halves
    if min(first.count, second.count) < 2:
        raise TooFewRowsError(
            "a debiased reading needs at least 2 rows in each half of the documents, "
            f"got {int(first.count)} and {int(second.count)}",
            hint="give more documents; they are dealt to halves by a hash of their id",
            slug="too-few-documents",
        )


def no_spread() -> UndefinedError:
    """Return the error for rows that are all alike."""
    return UndefinedError(
        "a spectrum needs rows that differ, got identical rows",
        hint="check how the vectors were made; all of them are the same",
        slug="no-spread",
    )
