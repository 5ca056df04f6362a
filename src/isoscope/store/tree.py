"""The fixed merge tree: whatever order units finish in, they are added up the same way.

Sums of floating-point numbers depend on the order of the additions. A node of the tree
covers 2^level consecutive units; it is the merge of its two halves and of nothing else, so
that a run that was killed and resumed, or spread over many workers, gives the same bits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, Self


class Mergeable(Protocol):
    """What can be added up: a survey."""

    def merge(self, other: Self) -> None:
        """Take in everything another has seen."""
        ...


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


def _as_is(result: Any) -> Any:
    return result


@dataclass
class Tree:
    """The finished nodes of a run, merged as far up as they go.

    Every node is `settled`, so that one that was kept in memory and one that was written
    and read again go on with the same bits.
    """

    units: int
    settled: Callable[[Any], Any] = _as_is  # what a node becomes when it is saved and loaded
    nodes: dict[Node, Mergeable] = field(default_factory=dict[Node, Mergeable])

    def add(self, unit: int, result: Mergeable) -> None:
        """Take in the result of a unit, and merge upwards while both halves are there."""
        node = Node(0, unit)
        self.nodes[node] = self.settled(result)
        while node.sibling in self.nodes:
            left, right = sorted((node, node.sibling))
            whole = self.nodes.pop(left)
            whole.merge(self.nodes.pop(right))
            node = node.parent
            self.nodes[node] = self.settled(whole)

    def missing(self) -> Iterator[int]:
        """Yield the units that no node covers yet, in order."""
        covered = sorted((node.first, node.first + (1 << node.level)) for node in self.nodes)
        unit = 0
        for start, end in [*covered, (self.units, self.units)]:
            yield from range(unit, min(start, self.units))
            unit = max(unit, end)

    def total(self, copy: Callable[[Mergeable], Mergeable]) -> Mergeable | None:
        """Return all nodes added up, the largest first; the nodes stay as they are."""
        if not self.nodes:
            return None
        first, *rest = (self.nodes[node] for node in sorted(self.nodes, key=_by_place))
        whole = copy(first)
        for part in rest:
            whole.merge(part)
        return whole


def _by_place(node: Node) -> int:
    return node.first
