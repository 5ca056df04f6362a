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
from isoscope.types import Array

SHARES = (1e-5, 1e-4, 1e-3, 1e-2)  # of all tokens; a band lies between two of them
FREQUENCIES = (
    "frequency below 1e-5",
    "frequency 1e-5 to 1e-4",
    "frequency 1e-4 to 1e-3",
    "frequency 1e-3 to 1e-2",
    "frequency above 1e-2",
)
POSITIONS = 16  # bands; the last begins at 16,384


def frequency_bands(counts: Array) -> Array:
    """Return the band of every token of a vocabulary, from how often each occurs."""
    shares = np.asarray(counts, dtype=np.float64) / max(float(np.sum(counts)), 1.0)
    return np.searchsorted(SHARES, shares, side="right").astype(np.int8)


def position_bands(positions: Array) -> Array:
    """Return the band of every position: 0, 1, 2-3, 4-7 and so on."""
    exponent = np.frexp(np.asarray(positions, dtype=np.float64))[1]
    return np.minimum(exponent, POSITIONS - 1).astype(np.int64)


def band_name(band: int) -> str:
    """Return what the readings of a band are called."""
    if band < len(FREQUENCIES):
        return FREQUENCIES[band]
    place = band - len(FREQUENCIES)
    first, last = (2 ** (place - 1), 2**place - 1) if place else (0, 0)
    if place == POSITIONS - 1:
        return f"position {first} and later"
    return f"position {first}" if first == last else f"position {first}-{last}"


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
        labels = [len(FREQUENCIES) + position_bands(block.positions)]
        if block.frequency is not None:
            labels.append(block.frequency.astype(np.int64))
        stacked = np.stack(labels)  # (1 or 2, n)
        number = int(stacked.max()) + 1
        units, nonzero = block.labelled_units(stacked, number)
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
        cells, known = block.cells, block.frequency
        frequent = np.zeros(len(block), np.int64) if known is None else known.astype(np.int64)
        cell = np.repeat(np.arange(len(cells.keys)), np.diff(cells.starts))
        pair = (frequent * POSITIONS + position_bands(block.positions))[cells.order]
        shape = self._empty("crossed", len(cells.keys)).shape
        there = (block.squares > 0)[cells.order]
        flat = np.bincount(cell * shape[1] * shape[2] + pair, there, int(np.prod(shape)))
        self._add_block(block, {"crossed": flat.reshape(shape)})
        self.counted &= known is not None

    def finalize(self) -> CrossingSummary:
        """Return the counts of every group."""
        self._enough(self.count)
        return CrossingSummary(
            keys=self.keys.copy(),
            crossed=self.parts["crossed"].copy(),
            counted=self.counted,
            documents=self.documents,
        )
