"""The plain case of a view: one summary that knows how to leave out a group."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from isoscope.accumulate import Accumulator
from isoscope.measures.view.summaries import Summaries
from isoscope.types import Array


@dataclass(frozen=True)
class Grouped:
    """A view of a single summary."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]]
    seen: Any

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the one summary needed."""
        return cls(summaries.of(cls.needs[0]))

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

    def without(self, group: int) -> Self:
        """Return the view as if a group had never been seen."""
        return type(self)(self.seen.without(group))
