"""Documents: how alike their rows are, and what rows of different documents read."""

from dataclasses import dataclass
from typing import Any, ClassVar

from isoscope.accumulate import (
    Accumulator,
    Directions,
    DirectionsSummary,
    Sentences,
    SentencesSummary,
)
from isoscope.measures.view.summaries import Summaries
from isoscope.measures.view.units import Units
from isoscope.types import Array


@dataclass(frozen=True)
class SentenceSums:
    """Cosines of rows to the mean of their document, beside those across documents."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Sentences, Directions)
    seen: SentencesSummary
    directions: DirectionsSummary

    @classmethod
    def of(cls, summaries: Summaries) -> "SentenceSums":
        """Return the view of both."""
        return cls(summaries.of(Sentences), summaries.of(Directions))

    @property
    def units(self) -> Units:
        """The unit vectors of all rows."""
        return Units(self.directions)

    @property
    def count(self) -> int:
        """How many rows it rests on."""
        return self.seen.count

    @property
    def documents(self) -> int:
        """How many documents count."""
        return int(self.seen.sentences.sum())

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.seen.groups

    @property
    def sizes(self) -> Array:
        """Documents in each group."""
        return self.seen.sizes

    @property
    def keys(self) -> Array:
        """Which groups of documents they are."""
        return self.seen.keys

    def without(self, group: int) -> "SentenceSums":
        """Return the view as if a group had never been seen."""
        same = self.directions.groups == self.seen.groups  # else some have one-row documents
        left = self.directions.without(group) if same else self.directions
        return SentenceSums(self.seen.without(group), left)
