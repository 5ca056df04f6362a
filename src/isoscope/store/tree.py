"""The fixed merge tree: whatever order units finish in, they are added up the same way.

Sums of floating-point numbers depend on the order of the additions. A node of the tree
covers 2^level consecutive units; it is the merge of its two halves and of nothing else, so
that a run that was killed and resumed, or spread over many workers, gives the same bits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A place in the tree: units index * 2^level up to, not including, the next node's."""

    level: int
    index: int

    @property
    def first(self) -> int:
        """The first unit it covers."""
        return self.index << self.level

    def covers(self, unit: int) -> bool:
        """Whether a unit is below this node."""
        return unit >> self.level == self.index

    @property
    def parent(self) -> "Node":
        """The node one level up."""
        return Node(self.level + 1, self.index // 2)

    @property
    def sibling(self) -> "Node":
        """The other half of the parent."""
        return Node(self.level, self.index ^ 1)


class Tree(Generic[T]):
    """The finished nodes of a run, merged as far up as they go.

    `join` makes a node out of its two halves, and is the only thing that ever does.
    """

    def __init__(self, units: int, join: Callable[[Node, T, T], T]) -> None:
        self.units = units
        self.join = join
        self.nodes: dict[Node, T] = {}

    def holds(self, node: Node) -> bool:
        """Whether a node covers units of this run and no others."""
        return node.level < 64 and (node.index + 1) << node.level <= self.units

    def put(self, node: Node, result: T) -> None:
        """Take in a finished node, and merge upwards while both halves are there."""
        self.nodes[node] = result
        while node.sibling in self.nodes:
            # Taken out first: a merge that is interrupted may have changed a half, which
            # must never count again.
            left, right = (self.nodes.pop(half) for half in sorted((node, node.sibling)))
            node = node.parent
            self.nodes[node] = self.join(node, left, right)

    def missing(self) -> Iterator[int]:
        """Yield the units that no node covers yet, in order."""
        covered = sorted((node.first, node.first + (1 << node.level)) for node in self.nodes)
        unit = 0
        for start, end in [*covered, (self.units, self.units)]:
            yield from range(unit, min(start, self.units))
            unit = max(unit, end)

    @property
    def roots(self) -> list[T]:
        """What is to be added up at the end, from the first unit to the last."""
        return [self.nodes[node] for node in sorted(self.nodes, key=lambda node: node.first)]
