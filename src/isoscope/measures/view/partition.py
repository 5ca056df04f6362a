"""Partition sums along the principal axes, with the norms a random cloud must share."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isoscope.accumulate import (
    Accumulator,
    ArrayBlock,
    Norms,
    NormsSummary,
    Partitions,
    PartitionsSummary,
    Reservoir,
)
from isoscope.measures.view.summaries import Summaries
from isoscope.types import Array


@dataclass(frozen=True)
class PartitionSums:
    """Log partition functions of every group, and the norms of the rows."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Partitions, Norms)
    seen: PartitionsSummary
    lengths: Array  # (n,) of the rows, to within the accuracy of the bins

    @classmethod
    def of(cls, summaries: Summaries) -> "PartitionSums":
        """Return the view of the second pass and the norms of the first."""
        norms: NormsSummary = summaries.of(Norms)
        if Partitions in summaries.sampled:
            norms = _norms_of(summaries.of(Reservoir).rows)
        lengths, counts = norms.levels()
        return cls(summaries.of(Partitions), np.repeat(lengths, counts.astype(np.int64)))

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.seen.plus.shape[1]

    @property
    def count(self) -> int:
        """How many rows it rests on."""
        return self.seen.count

    @property
    def documents(self) -> int:
        """How many documents it rests on."""
        return self.seen.documents

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.seen.groups

    @property
    def sizes(self) -> Array:
        """Rows in each group."""
        return self.seen.sizes

    @property
    def keys(self) -> Array:
        """Which groups of documents they are."""
        return self.seen.keys

    def without(self, group: int) -> "PartitionSums":
        """Return the view as if a group had never been seen."""
        return PartitionSums(self.seen.without(group), self.lengths)


def _norms_of(rows: Array) -> NormsSummary:
    norms = Norms(rows.shape[1])
    norms.update(ArrayBlock(rows))
    return norms.finalize()
