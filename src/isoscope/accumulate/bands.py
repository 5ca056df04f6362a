"""Rows by band: of rare and frequent tokens, of early and late positions.

`Bands` sums where the rows of each band point, `Crossing` counts the rows of each pair of a
frequency and a position band. Together they are all that an additive model of the two needs;
sums for every pair would take many times the room and tell such a model no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import Cellwise
from isoscope.accumulate.row_bands import FREQUENCIES, POSITIONS, band_name
from isoscope.types import Array


@dataclass(frozen=True)
class BandsSummary:
    """Sums of unit vectors of every document group in every band."""

    nonzero: Array  # (groups, bands)
    units: Array  # (groups, bands, d)
    documents: int

    @property
    def names(self) -> tuple[str, ...]:
        """What the bands are called."""
        return tuple(band_name(band) for band in range(self.nonzero.shape[1]))


class Bands(Cellwise[BandsSummary]):
    """Sums of unit vectors by frequency band of the token and by position band.

    There are as many bands as the last that has been seen; no more than 5 and 16.
    """

    by_place = True
    shapes = {"nonzero": ("bands",), "units": ("bands", "width")}  # noqa: RUF012
    bands: int = 0

    def _add(self, block: Block) -> None:
        units, nonzero = block.by_band
        self._add_block(block, {"nonzero": nonzero, "units": units})

    def _take_in(self, keys: Array, folded: bool, parts: Mapping[str, Array]) -> None:
        number = parts["nonzero"].shape[1]
        if number > self.bands:
            self.bands = number
            self.parts = {name: self._wider(part) for name, part in self.parts.items()}
        super()._take_in(keys, folded, {name: self._wider(p) for name, p in parts.items()})

    def _wider(self, part: Array) -> Array:
        missing = self.bands - part.shape[1]
        room = [(0, 0), (0, missing), *([(0, 0)] * (part.ndim - 2))]
        return np.pad(part, room) if missing else part

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.bands = int(state["nonzero"].shape[1])
        super()._restore(state)

    def finalize(self) -> BandsSummary:
        """Return the sums of every band."""
        self._enough(self.count)
        parts = {name: part.copy() for name, part in self.parts.items()}
        return BandsSummary(**parts, documents=self.documents)


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
    shapes = {"crossed": ("frequencies", "positions")}  # noqa: RUF012
    saved = ("counted", *Cellwise.saved)
    totals = ("counted", *Cellwise.totals)
    counted: bool = True
    frequencies, positions = len(FREQUENCIES), POSITIONS

    def _add(self, block: Block) -> None:
        shape = self._empty("crossed", len(block.cells.keys)).shape
        there = block.squares > 0
        flat = np.bincount(block.members.crossed, there, int(np.prod(shape)))
        self._add_block(block, {"crossed": flat.reshape(shape)})
        self.counted &= block.frequency is not None

    def finalize(self) -> CrossingSummary:
        """Return the counts of every group."""
        self._enough(self.count)
        return CrossingSummary(
            keys=self.keys.copy(),
            crossed=self.parts["crossed"].copy(),
            counted=self.counted,
            documents=self.documents,
        )
