"""The summaries of one site, what a view of them is, and the views that are one summary."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import replace
from threading import Lock
from typing import ClassVar, Self, TypeVar, cast

import numpy as np

from isoscope.accumulate import (
    Accumulator,
    ArrayBlock,
    CentredDirections,
    Directions,
    DirectionsSummary,
    Groups,
    GroupsSummary,
    Kind,
    Norms,
    NormsSummary,
    Partitions,
    PartitionsSummary,
    Reservoir,
    Sentences,
    SentencesSummary,
)
from isoscope.accumulate.cellwise import ByGroup
from isoscope.accumulate.sums import lazy
from isoscope.dataclass import dataclass
from isoscope.errors import IsoscopeError, TooFewRowsError, UndefinedError
from isoscope.types import Array

S = TypeVar("S")
V = TypeVar("V", bound="View")


class Summaries(dict[Kind, object]):
    """Summaries by the accumulator they come from; one that failed holds its error.

    Without intervals, views leave out each group's part, which only intervals need.
    """

    def __init__(self, *, intervals: bool = True) -> None:
        super().__init__()
        self.intervals = intervals
        self.spectra: frozenset[bool] = frozenset()  # to be read: about zero or the mean
        self.sampled: set[Kind] = set()  # made from the sample, not from all rows
        self._views: dict[type[View], View | IsoscopeError] = {}
        self._making: dict[type[View], Lock] = {}

    def __missing__(self, kind: Kind) -> object:
        if kind.by_token:
            raise no_tokens()
        raise TooFewRowsError(
            f"no {kind.__name__.lower()} were kept, which this measure reads",
            hint="measure the vectors again with this measure, or with --all",
            slug="summary-not-kept",
        )

    def of(self, kind: type[Accumulator[S]]) -> S:
        """Return a summary, or raise the error that stands in its place."""
        found = self[kind]
        if isinstance(found, IsoscopeError):
            raise found
        return cast("S", found)  # what `finalize` of this kind returned

    def view(self, kind: type[V]) -> V:
        """Return the view of this kind, made once; or raise what kept it from being made.

        A thread that asks for a view that another one is making waits for it.
        """
        if kind not in self._views:
            with self._making.setdefault(kind, Lock()):
                if kind not in self._views:
                    self._views[kind] = self._make(kind)
        found = self._views[kind]
        if isinstance(found, IsoscopeError):
            raise found
        return cast("V", found)  # what `of` of this kind returned

    def forget(self) -> None:
        """Let go of all summaries and views.

        Some views refer back to these: else the memory of a site would wait for the garbage
        collector.
        """
        self._views.clear()
        self.clear()

    def _make(self, kind: "type[View]") -> "View | IsoscopeError":
        try:
            return kind.of(self)
        except (TooFewRowsError, UndefinedError) as problem:
            return problem


class View(ABC):
    """What a measure reads, and the only thing it may read: one or more summaries."""

    needs: ClassVar[tuple[Kind, ...]]
    for_intervals: ClassVar[tuple[Kind, ...]] = ()  # of these, what a value alone does without
    over_types: ClassVar[bool] = False  # groups are of token types, not of documents

    @classmethod
    @abstractmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of these summaries."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rows it rests on."""


@dataclass(frozen=True, kw_only=True)
class GroupView(ByGroup, View):
    """A view whose groups can be excluded one at a time, which its interval is made from."""

    thinning: float = 1.0  # factor of the error, where the groups are of a sample

    @lazy
    def known_without(self) -> dict[Hashable, Array]:
        """Measures without each group that were worked out already."""
        return {}

    def values_without(self, compute: Callable[[Self], float]) -> Array:
        """Return a measure without each group, (groups,)."""
        return np.array([compute(self.without(group)) for group in range(self.groups)])


class SummaryView(GroupView):
    """A view that is one summary, as it is."""

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the summary that is needed."""
        return cls(**vars(summaries.of(cls.needs[0])))


class Units(DirectionsSummary, SummaryView):
    """Sums of unit vectors."""

    needs = (Directions,)


class CentredUnits(Units):
    """Sums of unit vectors as seen from the mean."""

    needs = (CentredDirections,)


class Masses(GroupsSummary, SummaryView):
    """Rows, mean and trace of each group; without the sketch, which is large to copy."""

    needs = (Groups,)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the groups."""
        groups = summaries.of(Groups)
        return cls(**vars(replace(groups, sketch=groups.sketch[:, :, :0])))


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
        return left.changed(units=self.units.without(group))


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
        return cls(**vars(summaries.of(Partitions)), lengths=norms.lengths())

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.plus.shape[1]


def _norms_of(rows: Array) -> NormsSummary:
    norms = Norms(rows.shape[1])
    norms.update(ArrayBlock(rows))
    return norms.finalize()


def no_tokens() -> TooFewRowsError:
    """Return the error for rows of which none is of a token."""
    return TooFewRowsError(
        "a measure by token type needs rows with tokens, got rows without",
        hint="survey a model over text; vectors on disk have no tokens",
        slug="no-tokens",
    )
