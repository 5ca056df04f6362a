"""Two halves of the documents: products across them are free of the bias of sampling."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isoscope.accumulate import Accumulator, Groups, GroupsSummary, Moments, MomentsSummary
from isoscope.errors import TooFewRowsError
from isoscope.measure.view.energy import factors, spanned
from isoscope.measure.view.spectrum import Spectrum
from isoscope.measure.view.summaries import Summaries
from isoscope.types import Array


@dataclass(frozen=True)
class Halves:
    """The moments in halves, with the groups that belong to each."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Moments, Groups)
    moments: MomentsSummary
    parts: GroupsSummary
    summaries: Summaries

    @classmethod
    def of(cls, summaries: Summaries) -> "Halves":
        """Return the view of moments and groups."""
        return cls(summaries.of(Moments), summaries.of(Groups), summaries)

    @property
    def count(self) -> int:
        """How many rows it rests on."""
        return self.moments.count

    @property
    def documents(self) -> int:
        """How many documents it rests on."""
        return self.moments.documents

    @property
    def whole(self) -> Spectrum:
        """The spectrum of both halves together."""
        return self.summaries.view(Spectrum)

    def covariances(self) -> tuple[Array, Array]:
        """Return the covariance of each half."""
        first, second = self.moments.halves
        if min(first.count, second.count) < 2:
            raise TooFewRowsError(
                "a debiased reading needs at least 2 rows in each half of the documents, "
                f"got {int(first.count)} and {int(second.count)}",
                hint="give more documents; they are dealt to halves by a hash of their id",
                slug="too-few-documents",
            )
        return first.scatter / (first.count - 1), second.scatter / (second.count - 1)

    def cross_products(self, half: int, other: Array) -> Array:
        """Return tr(T_k C) for the groups k of a half, C the covariance of the other.

        T_k is the scatter of a group about the mean of its half, known by its sketch; the
        trace that the sketch does not show is taken to lie as C does.
        """
        here = self.parts.halves == half
        centres = np.tile(self.moments.halves[half].origin, (len(here), 1))
        factor, rest = (part[here] for part in factors(self.parts, centres))
        pushed = other @ factor  # (groups, d, rank)
        shown = np.einsum("kdr,kdr->k", factor, pushed)
        basis = spanned(factor)
        turned = other @ basis
        within = np.einsum("kdr,kdr->k", basis, turned)
        within_twice = np.einsum("kdr,kdr->k", turned, turned)
        trace, length = np.trace(other), np.einsum("ij,ij->", other, other)
        outside = np.maximum(trace - within, 0.0)
        ratio = np.divide(
            np.maximum(length - within_twice, 0.0),
            outside,
            out=np.zeros_like(outside),
            where=outside > 1e-12 * trace,
        )
        return shown + rest * ratio

    def group_traces(self, half: int) -> tuple[Array, Array]:
        """Return rows and scatter traces, about the mean of the half, of its groups."""
        here = self.parts.halves == half
        step = self.parts.mean[here] - self.moments.halves[half].origin
        rows = self.parts.rows[here]
        return rows, self.parts.trace[here] + rows * np.einsum("kd,kd->k", step, step)
