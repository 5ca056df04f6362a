"""Where rows point, band by band: of rare and frequent tokens, of early and late positions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cells import Cellwise
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

    shapes = {"nonzero": "", "units": "d"}  # noqa: RUF012

    def __init__(self, width: int) -> None:
        self.bands = 0
        super().__init__(width)

    def _empty(self, name: str, cells: int) -> Array:
        shape = (cells, self.bands)
        return np.zeros((*shape, self.width) if self.shapes[name] else shape)

    def _add(self, block: Block) -> None:
        labels = [len(FREQUENCIES) + position_bands(block.positions)]
        if block.frequency is not None:
            labels.append(block.frequency.astype(np.int64))
        stacked = np.stack(labels)
        number = int(stacked.max()) + 1
        units, nonzero = block.labelled_units(stacked, number)
        parts = {"nonzero": nonzero, "units": units}
        self._take_in(block.cells.keys, block.cells.folded, parts)
        self.documents += len(block.runs) - 1

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

    def _absorb(self, other: Any) -> None:
        if other.bands:
            super()._absorb(other)
