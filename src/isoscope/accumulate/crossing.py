"""How many rows each pair of bands has: a frequency band and a position band.

With the sums of `Bands` it is all that an additive model of frequency and position needs;
sums of rows for every pair would take many times the room and tell such a model no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoscope.accumulate.bands import FREQUENCIES, POSITIONS, position_bands
from isoscope.accumulate.block import Block
from isoscope.accumulate.cells import Cellwise
from isoscope.types import Array


@dataclass(frozen=True)
class CrossingSummary:
    """Rows that have a direction, by document group, frequency band and position band."""

    keys: Array  # (groups,) uint64
    crossed: Array  # (groups, frequencies, positions)
    counted: bool  # whether the frequency of every token is known
    documents: int


class Crossing(Cellwise[CrossingSummary]):
    """Counts of rows by frequency band and position band.

    Where no frequency is known, all rows are in the first band.
    """

    by_place = True

    shapes = {"crossed": "fp"}  # noqa: RUF012

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.counted = True

    def _empty(self, name: str, cells: int) -> Array:
        assert name == "crossed"
        return np.zeros((cells, len(FREQUENCIES), POSITIONS))

    def _add(self, block: Block) -> None:
        cells, known = block.cells, block.frequency
        frequent = np.zeros(len(block), np.int64) if known is None else known.astype(np.int64)
        cell = np.repeat(np.arange(len(cells.keys)), np.diff(cells.starts))
        pair = (frequent * POSITIONS + position_bands(block.positions))[cells.order]
        shape = self._empty("crossed", len(cells.keys)).shape
        there = (block.squares > 0)[cells.order]
        flat = np.bincount(cell * shape[1] * shape[2] + pair, there, int(np.prod(shape)))
        self._take_in(cells.keys, cells.folded, {"crossed": flat.reshape(shape)})
        self.counted &= known is not None
        self.documents += len(block.runs) - 1

    def _absorb(self, other: Any) -> None:
        super()._absorb(other)
        self.counted &= other.counted

    def _arrays(self) -> dict[str, Array]:
        return {"counted": np.array(self.counted, dtype=np.uint8), **super()._arrays()}

    def _restore(self, state: Mapping[str, Array]) -> None:
        super()._restore(state)
        self.counted = bool(state["counted"])

    def finalize(self) -> CrossingSummary:
        """Return the counts of every group."""
        self._enough(self.count)
        return CrossingSummary(
            keys=self.keys.copy(),
            crossed=self.parts["crossed"].copy(),
            counted=self.counted,
            documents=self.documents,
        )
