"""Two halves of the documents: products across them are free of the bias of sampling."""

from dataclasses import dataclass
from typing import Any, ClassVar

from isoscope.accumulate import Accumulator, Groups, Moments, MomentsSummary, Reservoir
from isoscope.errors import TooFewRowsError
from isoscope.measures.view.parts import Parts, parts_of
from isoscope.measures.view.spectrum import Spectrum
from isoscope.measures.view.summaries import Summaries
from isoscope.types import Array


@dataclass(frozen=True)
class Halves:
    """The moments in halves, with the groups that belong to each."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Moments, Groups, Reservoir)
    for_intervals: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Groups,)
    moments: MomentsSummary
    parts: Parts
    summaries: Summaries

    @classmethod
    def of(cls, summaries: Summaries) -> "Halves":
        """Return the view of moments and groups."""
        return cls(summaries.of(Moments), parts_of(summaries), summaries)

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
