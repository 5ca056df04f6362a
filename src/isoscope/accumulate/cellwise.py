"""Arrays kept for each cell: single documents while there are few, else 32 groups of them.

The same documents give the same cells whatever the order or the cuts: which form is used
depends only on how many documents there are in all.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from isoscope.accumulate.base import Accumulator, S
from isoscope.accumulate.hashing import GROUPS
from isoscope.types import Array


class Cellwise(Accumulator[S]):
    """An accumulator whose arrays have one entry for each cell."""

    shapes: ClassVar[dict[str, str]]  # array name: the axis after the first, "d" or none

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.keys = np.zeros(0, dtype=np.uint64)
        self.folded = False
        self.documents = 0
        self.parts = {name: self._empty(name, 0) for name in self.shapes}

    def _empty(self, name: str, cells: int) -> Array:
        return np.zeros((cells, self.width) if self.shapes[name] else cells)

    def _take_in(self, keys: Array, folded: bool, parts: Mapping[str, Array]) -> None:
        """Pool the cells of a block or of a peer with ours."""
        if folded and not self.folded:
            self._fold()
        if self.folded and not folded:
            keys = keys % np.uint64(GROUPS)
        if not self.folded and not self._known(keys) and self._too_many(keys):
            self._fold()
            keys = keys % np.uint64(GROUPS)
        self._make_room(keys)
        slots = np.searchsorted(self.keys, keys)
        ordered = np.sort(slots)
        if (ordered[1:] != ordered[:-1]).all():
            self._pool(slots, parts)
            return
        for cell, slot in enumerate(slots):  # several documents of one group
            one = {name: part[cell : cell + 1] for name, part in parts.items()}
            self._pool(np.array([slot]), one)

    def _known(self, keys: Array) -> bool:
        """Whether there is a cell for each of these already, as there mostly is."""
        slots = np.searchsorted(self.keys, keys)
        return bool((slots < len(self.keys)).all() and (self.keys[slots] == keys).all())

    def _too_many(self, keys: Array) -> bool:
        return len(np.union1d(self.keys, keys)) > GROUPS

    def _make_room(self, keys: Array) -> None:
        if self._known(keys):
            return
        wanted = np.union1d(self.keys, keys)
        slots = np.searchsorted(wanted, self.keys)
        for name, old in self.parts.items():
            self.parts[name] = self._empty(name, len(wanted))
            self.parts[name][slots] = old
        self.keys = wanted

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

    def _absorb(self, other: Any) -> None:
        self.documents += other.documents
        self._take_in(other.keys, other.folded, other.parts)

    def _arrays(self) -> dict[str, Array]:
        return {
            "keys": self.keys,
            "folded": np.array(self.folded, dtype=np.uint8),
            "documents": np.array(self.documents, dtype=np.int64),
            **self.parts,
        }

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.keys = np.array(state["keys"], dtype=np.uint64)
        self.folded = bool(state["folded"])
        self.documents = int(state["documents"])
        self.parts = {
            name: np.array(state[name], dtype=self._empty(name, 0).dtype)
            for name in self.shapes
        }
