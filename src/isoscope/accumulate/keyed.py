"""Grouping by key: one accumulator for each frequency band, position band or cluster."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import ArrayBlock, Block
from isoscope.accumulate.moments import Moments
from isoscope.types import Array


class Keyed(Accumulator[dict[str, Any]]):
    """Accumulators of one kind by the key of the rows they have seen.

    The key of a row is what `label` of its block says; without labels all rows share one.
    """

    kind: type[Accumulator[Any]] = Moments

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.members: dict[str, Accumulator[Any]] = {}

    def update_by(self, block: Block, labels: Array) -> None:
        """Take in a block whose rows carry labels, each label's rows under its own key."""
        for label in np.unique(labels):
            here = np.flatnonzero(labels == label)
            part = ArrayBlock(
                block.rows[here],
                block.documents[here],
                block.positions[here],
                tokens=None if block.tokens is None else block.tokens[here],
                frequency=None if block.frequency is None else block.frequency[here],
                sketched=block.sketched,
                independent=block.independent,
            )
            self._member(str(label)).update(part)
        self.count += len(block)

    def _member(self, key: str) -> Accumulator[Any]:
        if key not in self.members:
            self.members[key] = self.kind(self.width)
        return self.members[key]

    def _add(self, block: Block) -> None:
        self._member("").update(block)

    def _absorb(self, other: Any) -> None:
        for key, theirs in other.members.items():
            self._member(key).merge(theirs)

    def signature(self) -> tuple[object, ...]:
        """Only the same kind of members adds up."""
        return (self.width, self.kind)

    def _arrays(self) -> dict[str, Array]:
        return {
            f"{key}/{name}": array
            for key, member in sorted(self.members.items())
            for name, array in member.state().items()
        }

    def _restore(self, state: Mapping[str, Array]) -> None:
        by_key: dict[str, dict[str, Array]] = {}
        for path, array in state.items():
            key, slash, name = path.rpartition("/")
            if slash:
                by_key.setdefault(key, {})[name] = array
        self.members = {
            key: self.kind.from_state(arrays, width=self.width)
            for key, arrays in by_key.items()
        }

    def finalize(self) -> dict[str, Any]:
        """Return the summary of every key that has rows enough for one."""
        self._enough(self.count)
        return {
            key: member.finalize()
            for key, member in sorted(self.members.items())
            if member.count >= member.least
        }

    @classmethod
    def of(cls, kind: type[Accumulator[Any]]) -> type["Keyed"]:
        """Return the class that groups accumulators of this kind."""
        return _keyed(cls, kind)


@cache
def _keyed(base: type[Keyed], kind: type[Accumulator[Any]]) -> type[Keyed]:
    """Make the class once: two of the same name would refuse to merge."""
    return type(f"Keyed{kind.__name__}", (base,), {"kind": kind})
