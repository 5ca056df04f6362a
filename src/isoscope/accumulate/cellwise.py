"""Arrays with one entry per cell: single documents while there are few, else 32 groups.

The same documents give the same cells whatever the order or the cuts: which form is used
depends only on how many documents there are in all.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import ClassVar, Self, TypeVar

import numpy as np

from isoscope.accumulate.base import Accumulator, S_co
from isoscope.accumulate.block import Block
from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS, sorted_distinct
from isoscope.types import Array

N = TypeVar("N", float, Array)


def pairwise_weights(ours: N, theirs: N) -> tuple[N, N]:
    """Return b / n and a b / n, for a and b rows that become n (Chan, Golub and LeVeque, 1983).

    With `step` from our mean to theirs, the mean moves by step b / n, and sums about the
    means grow by the product of the step with itself times a b / n:

        mean    = mean_a + step b / n
        scatter = scatter_a + scatter_b + step step' a b / n

    >>> pairwise_weights(3.0, 1.0)
    (0.25, 0.75)
    """
    total = ours + theirs
    return theirs / total, ours * theirs / total


@dataclass(frozen=True, kw_only=True)
class ByGroup:
    """Sums by group of documents; intervals come from excluding one group at a time."""

    arrays: ClassVar[tuple[str, ...]] = ()  # with one entry per group, besides these two:
    keys: Array  # (groups,) the same documents are in the same group in every run
    sizes: Array  # (groups,) rows in each group
    documents: int

    @property
    def groups(self) -> int:
        """How many groups an interval can be computed from."""
        return len(self.keys)

    @property
    def count(self) -> int:
        """How many rows were seen."""
        return int(self.sizes.sum())

    def without(self, group: int) -> Self:
        """Return the same sums as if a group had never been seen."""
        return self.only(np.arange(self.groups) != group)

    def only(self, groups: Array | slice, **others: Array) -> Self:
        """Return the sums of chosen groups alone: a slice, or (groups,) true or false.

        What has no entry per group is replaced by `others`.
        """
        names = ("keys", "sizes", *self.arrays)
        chosen = {name: getattr(self, name)[groups] for name in names}
        return self.changed(**chosen, **others)

    def changed(self, **values: object) -> Self:
        """Return a copy with other values of some fields.

        As `dataclasses.replace` does, in a fifth of its time: a site is read without each of
        its groups hundreds of times. What was worked out lazily is not copied.
        """
        new, ours = object.__new__(type(self)), vars(self)
        vars(new).update({name: ours[name] for name in _names(type(self))}, **values)
        return new


@cache
def _names(kind: type[ByGroup]) -> tuple[str, ...]:
    """Return the fields of a class."""
    return tuple(each.name for each in fields(kind))


class Cellwise(Accumulator[S_co]):
    """An accumulator whose arrays have one entry for each cell."""

    shapes: ClassVar[dict[str, tuple[str, ...]]]  # array: attributes with sizes of its axes
    dtypes: ClassVar[dict[str, np.dtype[np.generic]]] = {}  # of arrays not in float64
    saved: ClassVar[tuple[str, ...]] = ("keys", "folded", "documents")  # and the arrays
    totals: ClassVar[tuple[str, ...]] = ("documents",)
    folded: bool = False  # whether cells are groups
    documents: int = 0

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.keys = np.zeros(0, dtype=np.uint64)
        self.parts = {name: self._empty(name, 0) for name in self.shapes}

    def add_to_cells(self, keys: Array, folded: bool, parts: Mapping[str, Array]) -> None:
        """Add to some of the arrays; the others stay as they are.

        What is said of cells without rows, as only a damaged file does, is ignored.
        """
        if folded and not self.folded:
            self._fold()
        ours = keys % np.uint64(GROUPS) if self.folded and not folded else keys
        there = np.isin(ours, self.keys)
        zeros = {name: self._empty(name, int(there.sum())) for name in self.shapes}
        found = {name: part[there] for name, part in parts.items()}
        self._take_in(keys[there], folded, {**zeros, **found})

    def _add_block(self, block: Block, parts: Mapping[str, Array]) -> None:
        """Pool the cells of a block with ours, and count its documents."""
        self._take_in(block.cells.keys, block.cells.folded, parts)
        self.documents += len(block.members.runs) - 1

    def _empty(self, name: str, cells: int) -> Array:
        shape = (cells, *(getattr(self, axis) for axis in self.shapes[name]))
        return np.zeros(shape, dtype=self.dtypes.get(name, np.dtype(np.float64)))

    def _take_in(self, keys: Array, folded: bool, parts: Mapping[str, Array]) -> None:
        """Pool the cells of a block or of a peer with ours."""
        slots = self._slots(keys, folded)
        ordered = np.sort(slots)
        if (ordered[1:] != ordered[:-1]).all():
            self._pool(slots, parts)
            return
        for cell, slot in enumerate(slots):  # several documents of one group
            one = {name: part[cell : cell + 1] for name, part in parts.items()}
            self._pool(np.array([slot]), one)

    def _slots(self, keys: Array, folded: bool) -> Array:
        """Make room for the cells of a block or of a peer; return where each has its place."""
        if folded and not self.folded:
            self._fold()
        if self.folded and not folded:
            keys = keys % np.uint64(GROUPS)
        few = self.folded or self._has_cells(keys)
        if not few and len(sorted_distinct(self.keys, keys)) > GROUPS:
            self._fold()
            keys = keys % np.uint64(GROUPS)
        self._make_room(keys)
        return np.searchsorted(self.keys, keys)

    def _has_cells(self, keys: Array) -> bool:
        """Whether there is a cell for each of these already, as there mostly is."""
        slots = np.searchsorted(self.keys, keys)
        return bool((slots < len(self.keys)).all() and (self.keys[slots] == keys).all())

    def _make_room(self, keys: Array) -> None:
        if self._has_cells(keys):
            return
        every = sorted_distinct(self.keys, keys)
        slots = np.searchsorted(every, self.keys)
        for name, old in self.parts.items():
            self.parts[name] = self._empty(name, len(every))
            self.parts[name][slots] = old
        self.keys = every

    def _fold(self) -> None:
        """Turn documents into groups."""
        keys, parts = self.keys, self.parts
        self.keys, self.folded = np.zeros(0, dtype=np.uint64), True
        self.parts = {name: self._empty(name, 0) for name in self.shapes}
        if len(keys):
            self._take_in(keys, False, parts)

    def _pool(self, slots: Array, parts: Mapping[str, Array]) -> None:
        """Add cells to ours, slot by slot; sums unless a subclass knows better."""
        for name, part in parts.items():
            self.parts[name][slots] += part

    def _pool_means(
        self, slots: Array, rows: str, parts: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Pool counts and means; return steps between means and weights of their squares."""
        ours, theirs = self.parts[rows][slots], parts[rows]
        share, weight = pairwise_weights(ours, theirs)  # (cells,)
        step = parts["mean"] - self.parts["mean"][slots]  # (cells,) or (cells, d)
        self.parts["mean"][slots] += step * share.reshape(-1, *[1] * (step.ndim - 1))
        self.parts[rows][slots] = ours + theirs
        return step, weight

    def _absorb(self, other: Self) -> None:
        self._take_in(other.keys, other.folded, other.parts)

    def _arrays(self) -> dict[str, Array]:
        return {**super()._arrays(), **self.parts}

    def _restore(self, state: Mapping[str, Array]) -> None:
        super()._restore(state)
        self.parts = {name: np.array(state[name]) for name in self.shapes}
