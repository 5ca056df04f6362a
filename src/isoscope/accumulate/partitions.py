"""Partition functions along fixed axes: sums of exp of projections, both signs, by group."""

from collections.abc import Mapping

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import ByGroup, Cellwise
from isoscope.dataclass import dataclass
from isoscope.types import Array

_ROWS = 512  # projected at once


@dataclass(frozen=True, kw_only=True)
class PartitionsSummary(ByGroup):
    """Log of the sum of exp(x . axis) over every group's rows, for each axis and sign."""

    arrays = ("plus", "minus")
    plus: Array  # (groups, d)
    minus: Array  # (groups, d)


class Partitions(Cellwise[PartitionsSummary]):
    """A second pass, once the axes are known: log-sum-exp of the rows along each, float64.

    Sums along different axes do not add up.
    """

    least = 2
    settings = ("axes",)
    saved = ("axes", *Cellwise.saved)
    shapes = {"sizes": (), "plus": ("width",), "minus": ("width",)}  # noqa: RUF012

    def __init__(self, width: int, axes: Array | None = None) -> None:
        super().__init__(width)
        self.axes = np.eye(width) if axes is None else np.asarray(axes, dtype=np.float64)

    def _empty(self, name: str, cells: int) -> Array:
        blank = super()._empty(name, cells)
        return blank if name == "sizes" else np.full_like(blank, -np.inf)

    def _add(self, block: Block) -> None:
        cells = block.cells
        count = len(cells.keys)
        sizes = np.diff(cells.starts).astype(np.float64)
        plus, minus = (np.full((count, self.width), -np.inf) for _ in range(2))
        for cell in range(count):
            chosen = cells.order[cells.starts[cell] : cells.starts[cell + 1]]
            for start in range(0, len(chosen), _ROWS):
                rows = block.rows[chosen[start : start + _ROWS]].astype(np.float64)
                along = rows @ self.axes
                plus[cell] = np.logaddexp(plus[cell], _log_sum(along))
                minus[cell] = np.logaddexp(minus[cell], _log_sum(-along))
        self._add_block(block, {"sizes": sizes, "plus": plus, "minus": minus})

    def _pool(self, slots: Array, parts: Mapping[str, Array]) -> None:
        self.parts["sizes"][slots] += parts["sizes"]
        for name in ("plus", "minus"):
            self.parts[name][slots] = np.logaddexp(self.parts[name][slots], parts[name])

    def finalize(self) -> PartitionsSummary:
        """Return the sums of every group."""
        self._enough(self.count)
        parts = {name: part.copy() for name, part in self.parts.items()}
        return PartitionsSummary(**parts, documents=self.documents, keys=self.keys.copy())


def _log_sum(values: Array) -> Array:
    """Log of the sum of exp over the first axis, without overflow."""
    top = values.max(axis=0)
    return top + np.log(np.exp(values - top).sum(axis=0))
