"""Partition sums along the principal axes, with the norms a random cloud must share."""

from dataclasses import dataclass
from typing import Any, ClassVar

from isoscope.accumulate import (
    Accumulator,
    Norms,
    NormsSummary,
    Partitions,
    PartitionsSummary,
)
from isoscope.measure.view.summaries import Summaries
from isoscope.types import Array


@dataclass(frozen=True)
class PartitionSums:
    """Log partition functions of every group, and the norms of the rows."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Partitions, Norms)
    seen: PartitionsSummary
    norms: NormsSummary

    @classmethod
    def of(cls, summaries: Summaries) -> "PartitionSums":
        """Return the view of the second pass and the norms of the first."""
        return cls(summaries.of(Partitions), summaries.of(Norms))

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

    def without(self, group: int) -> "PartitionSums":
        """Return the view as if a group had never been seen."""
        return PartitionSums(self.seen.without(group), self.norms)
