"""Views that are one summary, of which a group of documents can be excluded."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isoscope.accumulate import (
    ArrayBlock,
    CentredDirections,
    Directions,
    DirectionsSummary,
    Groups,
    GroupsSummary,
    Norms,
    NormsSummary,
    Partitions,
    PartitionsSummary,
    Reservoir,
    Sentences,
    SentencesSummary,
)
from isoscope.measures.view.summaries import Summaries, SummaryView
from isoscope.types import Array


class Units(DirectionsSummary, SummaryView):
    """Sums of unit vectors."""

    needs = (Directions,)


class CentredUnits(Units):
    """Sums of unit vectors as seen from the mean."""

    needs = (CentredDirections,)


class Masses(GroupsSummary, SummaryView):
    """Rows, mean and trace of each group."""

    needs = (Groups,)


class NormMoments(NormsSummary, SummaryView):
    """Mean and spread of the norms of each group."""

    needs = (Norms,)


@dataclass(frozen=True, kw_only=True)
class SentenceSums(SentencesSummary, SummaryView):
    """Cosines of rows to the mean of their document, beside those across documents."""

    needs = (Sentences, Directions)
    units: Units  # the unit vectors of all rows

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of both; documents of one row do not count."""
        seen = summaries.of(Sentences)
        counted = replace(seen, documents=int(seen.sizes.sum()))
        return cls(**vars(counted), units=summaries.view(Units))

    @property
    def count(self) -> int:
        """How many rows it rests on."""
        return self.rows

    def without(self, group: int) -> Self:
        """Return the view as if a group had never been seen."""
        left = super().without(group)
        if self.units.groups != self.groups:  # some groups have one-row documents only
            return left
        return replace(left, units=self.units.without(group))


@dataclass(frozen=True, kw_only=True)
class PartitionSums(PartitionsSummary, SummaryView):
    """Log partition functions along the principal axes, and norms for a random cloud."""

    needs = (Partitions, Norms)
    lengths: Array  # (n,) of the rows, to within the accuracy of the bins

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the second pass and the norms of the first."""
        norms = summaries.of(Norms)
        if Partitions in summaries.sampled:
            norms = _norms_of(summaries.of(Reservoir).rows)
        lengths, counts = norms.levels()
        repeated = np.repeat(lengths, counts.astype(np.int64))
        return cls(**vars(summaries.of(Partitions)), lengths=repeated)

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.plus.shape[1]


def _norms_of(rows: Array) -> NormsSummary:
    norms = Norms(rows.shape[1])
    norms.update(ArrayBlock(rows))
    return norms.finalize()
