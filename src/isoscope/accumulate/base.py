"""What every accumulator promises: update with a block, merge with a peer, finalize."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.errors import MergeError, RowError, TooFewRowsError
from isoscope.types import Array

S_co = TypeVar("S_co", covariant=True)  # the summary


class Accumulator(ABC, Generic[S_co]):
    """A stream of rows, reduced to arrays that two processes can combine.

    Subclasses write only the mathematics (`_add`, `_absorb`, `finalize`) and name their
    attributes; the checks live here, so an empty block or an empty peer never reaches
    the mathematics. The laws that make merging safe are tested for every subclass.
    """

    saved: ClassVar[tuple[str, ...]] = ()  # attributes that make up the state
    totals: ClassVar[tuple[str, ...]] = ()  # those that add up; bools hold while all do
    settings: ClassVar[tuple[str, ...]] = ()  # those that peers must have in common

    least: ClassVar[int] = 1  # rows needed before finalize means anything
    by_token: ClassVar[bool] = False  # whether it only takes rows with tokens
    by_place: ClassVar[bool] = False  # whether it only takes rows that are parts of documents

    def __init__(self, width: int) -> None:
        self.width = width
        self.count: int = 0

    def update(self, block: Block) -> None:
        """Take in a block of rows."""
        if not len(block):
            return
        if block.width != self.width:
            raise RowError(
                f"expected vectors of width {self.width}, got width {block.width}",
                hint="one accumulator serves one site; make another for this width",
                slug="rows-width",
            )
        self._add(block)
        self.count += len(block)

    def merge(self, other: Self) -> None:
        """Take in everything a peer has seen; the peer is left as it was."""
        if type(other) is not type(self) or other.signature() != self.signature():
            raise MergeError(
                f"cannot merge {self!r} with {other!r}",
                hint="parts must come from the same model, site and settings",
                slug="merge-kind",
            )
        if other.count:
            self._absorb(other)
            for name in ("count", *self.totals):
                ours, theirs = getattr(self, name), getattr(other, name)
                both = ours and theirs if isinstance(ours, bool) else ours + theirs
                setattr(self, name, both)

    def signature(self) -> tuple[object, ...]:
        """What two accumulators must have in common to be merged."""
        own = (np.asarray(getattr(self, name)).tobytes() for name in self.settings)
        return (self.width, *own)

    def state(self) -> dict[str, Array]:
        """Return the arrays that rebuild this accumulator, ready to save or to send."""
        return {"count": np.array(self.count, dtype=np.int64), **self._arrays()}

    @classmethod
    def from_state(cls, state: Mapping[str, Array], *, width: int) -> Self:
        """Rebuild an accumulator from what `state` returned."""
        new = cls(width)
        new.count = int(state["count"])
        new._restore(state)
        return new

    def _enough(self, rows: int) -> None:
        if rows < self.least:
            name = type(self).__name__.lower()
            raise TooFewRowsError(
                f"{name} needs at least {self.least} usable rows, got {rows}",
                hint="give more rows; zero rows and rows that were skipped do not count",
                slug="too-few-rows",
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(width={self.width}, count={self.count})"

    @abstractmethod
    def _add(self, block: Block) -> None:
        """Fold in a non-empty block; `self.count` is still the count before it."""

    def _absorb(self, other: Self) -> None:
        """Fold in what does not simply add up; `self.count` is still the count before it."""

    def _arrays(self) -> dict[str, Array]:
        """Return the state beside the count, the same whatever the cuts and the order."""
        values = {name: getattr(self, name) for name in self.saved}
        return {
            name: np.asarray(value, dtype=np.uint8 if isinstance(value, bool) else None)
            for name, value in values.items()
        }

    def _restore(self, state: Mapping[str, Array]) -> None:
        """Take over what `_arrays` returned."""
        for name in self.saved:
            kind = type(getattr(self, name))
            setattr(self, name, (np.array if kind is np.ndarray else kind)(state[name]))

    @abstractmethod
    def finalize(self) -> S_co:
        """Return a frozen summary; the accumulator may go on collecting afterwards."""


Kind = type[Accumulator[object]]
A = TypeVar("A", bound=Accumulator[object])


def accumulator_of(here: Mapping[Kind, Accumulator[object]], kind: type[A]) -> A:
    """Return the accumulator of a kind; KeyError where there is none."""
    found = here[kind]
    assert isinstance(found, kind)
    return found


def merged(parts: Iterable[A]) -> A:
    """Return one new accumulator that has seen what all the parts have seen."""
    first, *rest = parts
    total = deepcopy(first)
    for part in rest:
        total.merge(part)
    return total
