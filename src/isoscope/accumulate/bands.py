"""Rows by band: of rare and frequent tokens, of early and late positions, and of both at once.

Sums of unit vectors of every pair of a frequency and a position band. Those of a band are
sums over its pairs, so nothing else is kept.
"""

from collections.abc import Mapping

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import Cellwise
from isoscope.accumulate.row_bands import FREQUENCIES, band_name
from isoscope.dataclass import dataclass
from isoscope.hashing import sorted_distinct
from isoscope.types import Array


@dataclass(frozen=True)
class BandsSummary:
    """Sums of unit vectors of every document group in every band, frequencies first."""

    nonzero: Array  # (groups, bands)
    units: Array  # (groups, bands, d)
    documents: int

    @property
    def names(self) -> tuple[str, ...]:
        """What the bands are called."""
        return tuple(band_name(band) for band in range(self.nonzero.shape[1]))


@dataclass(frozen=True)
class BandCellsSummary:
    """Sums of unit vectors by document group, frequency band and position band."""

    keys: Array  # (groups,) uint64
    nonzero: Array  # (groups, frequencies, positions) rows that have a direction
    units: Array  # (groups, frequencies, positions, d)
    counted: bool  # whether the frequency of every token is known
    documents: int

    def bands(self) -> BandsSummary:
        """Return the sums of single bands; those of frequency are empty if it is unknown."""
        return BandsSummary(
            nonzero=_by_band(self.nonzero, self.counted),
            units=_by_band(self.units, self.counted),
            documents=self.documents,
        )


def _by_band(part: Array, counted: bool) -> Array:
    """Return (groups, frequency and position bands, ...) from pairs of them, in float64."""
    shape = (len(part), len(FREQUENCIES), *part.shape[3:])
    frequency, position = np.zeros(shape), part.sum(axis=1, dtype=np.float64)
    if counted:
        frequency[:, : part.shape[1]] = part.sum(axis=2, dtype=np.float64)
    return np.concatenate([frequency, position], axis=1)


class BandCells(Cellwise[BandCellsSummary]):
    """Sums of unit vectors by frequency band of the token and position band.

    There are as many bands as the last that has been seen; no more than 5 and 16. Where no
    frequency is known, all rows are in the first band. Sums are kept in float32, as there
    are many: 45 pairs of bands in documents of 256 tokens.
    """

    by_place = True
    shapes = {  # noqa: RUF012
        "nonzero": ("frequencies", "positions"),
        "units": ("frequencies", "positions", "width"),
    }
    dtypes = {"units": np.dtype(np.float32)}  # noqa: RUF012
    saved = ("counted", *Cellwise.saved)
    totals = ("counted", *Cellwise.totals)
    counted: bool = True
    frequencies: int = 0
    positions: int = 0

    def _add(self, block: Block) -> None:
        bands, (units, nonzero) = block.members.band_cells, block.by_band_cell
        self._widen(int(bands.frequency.max()) + 1, int(bands.position.max()) + 1)
        slots = self._slots(block.cells.keys, block.cells.folded)[bands.cell]
        # Few of a group's pairs are in a block: only those are added to.
        where = (slots, bands.frequency, bands.position)
        alone = len(slots) == len(sorted_distinct(np.ravel_multi_index(where, self._shape)))
        for name, part in (("nonzero", nonzero), ("units", units)):
            if alone:
                self.parts[name][where] += part
            else:  # several documents of one group
                np.add.at(self.parts[name], where, part)
        self.documents += len(block.members.runs) - 1
        self.counted &= block.frequency is not None

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.parts["nonzero"].shape

    def _take_in(self, keys: Array, folded: bool, parts: Mapping[str, Array]) -> None:
        self._widen(*parts["nonzero"].shape[1:])
        wide = {name: self._padded(part) for name, part in parts.items()}
        super()._take_in(keys, folded, wide)

    def _widen(self, frequencies: int, positions: int) -> None:
        """Make room for bands that were not seen before."""
        if frequencies <= self.frequencies and positions <= self.positions:
            return
        self.frequencies = max(frequencies, self.frequencies)
        self.positions = max(positions, self.positions)
        self.parts = {name: self._padded(part) for name, part in self.parts.items()}

    def _padded(self, part: Array) -> Array:
        missing = (self.frequencies - part.shape[1], self.positions - part.shape[2])
        room = [(0, 0), *((0, each) for each in missing), *([(0, 0)] * (part.ndim - 3))]
        return np.pad(part, room) if any(missing) else part

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.frequencies, self.positions = map(int, state["nonzero"].shape[1:])
        super()._restore(state)

    def finalize(self) -> BandCellsSummary:
        """Return the sums of every pair of bands."""
        self._enough(self.count)
        parts = {name: part.copy() for name, part in self.parts.items()}
        return BandCellsSummary(
            keys=self.keys.copy(), **parts, counted=self.counted, documents=self.documents
        )
