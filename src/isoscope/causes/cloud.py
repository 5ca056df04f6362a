"""The sums of a cloud whose mean cosine is to be explained, by document group and band."""

import numpy as np

from isoscope.accumulate import BandCells, Directions
from isoscope.accumulate.row_bands import FREQUENCIES
from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS
from isoscope.types import Array


@dataclass(frozen=True)
class BandedDirections:
    """Accumulators that saw the same rows; bands only where rows are tokens."""

    pointing: Directions
    bands: BandCells | None = None

    @property
    def has_bands(self) -> bool:
        """Whether rows are known by their position."""
        return self.bands is not None

    @property
    def has_frequencies(self) -> bool:
        """Whether the frequency of each token is known."""
        return self.bands is not None and self.bands.counted

    def by_band(self) -> tuple[Array, Array]:
        """Return sums of unit vectors by pair of bands, and numbers of rows.

        (groups, F, P, d) and (groups, F, P); F and P are 1 where nothing is known.
        """
        if self.bands is None:
            parts = self.pointing.parts
            return parts["units"][:, None, None], parts["nonzero"][:, None, None]
        units, rows = self.bands.parts["units"].astype(np.float64), self.bands.parts["nonzero"]
        if not self.bands.counted:
            return units.sum(axis=1, keepdims=True), rows.sum(axis=1, keepdims=True)
        return units, rows


@dataclass(frozen=True)
class CloudSums:
    """Sums of unit vectors of the rows that are not sinks, by band, and of the sinks."""

    units: Array  # (groups, F, P, d)
    rows: Array  # (groups, F, P)
    energy: Array  # (d,) sum of squared components of the rows that are not sinks
    sinks: Array  # (groups, d)
    sink_rows: Array  # (groups,)
    documents: int
    frequencies_known: bool
    positions_known: bool

    @classmethod
    def of(cls, rows: BandedDirections, sinks: Directions | None = None) -> "CloudSums":
        """Return the cloud of rows, and of sinks where there are any."""
        pointing = rows.pointing
        keys, (units, count) = pointing.keys, rows.by_band()
        sink_keys, pull, sink_count = _parts(sinks, pointing.width)
        if sinks is not None and sinks.folded != pointing.folded:
            keys, sink_keys = keys % np.uint64(GROUPS), sink_keys % np.uint64(GROUPS)
        every = np.union1d(keys, sink_keys)
        return cls(
            units=_sum_by_key(every, keys, units),
            rows=_sum_by_key(every, keys, count),
            energy=pointing.energy,
            sinks=_sum_by_key(every, sink_keys, pull),
            sink_rows=_sum_by_key(every, sink_keys, sink_count),
            documents=pointing.documents,
            frequencies_known=rows.has_frequencies,
            positions_known=rows.has_bands,
        )

    @property
    def groups(self) -> int:
        """How many groups an interval can be computed from."""
        return len(self.units)

    @property
    def width(self) -> int:
        """The number of dimensions."""
        return self.units.shape[-1]

    @property
    def sizes(self) -> Array:
        """Rows in each group."""
        return self.rows.sum(axis=(1, 2)) + self.sink_rows

    def bands(self, cause: str) -> tuple[range, Array, Array]:
        """Return the numbers of the bands of a cause, their sums and their rows by group."""
        along, first = (2, 0) if cause == "frequency" else (1, len(FREQUENCIES))
        units, rows = self.units.sum(axis=along), self.rows.sum(axis=along)
        return range(first, first + rows.shape[1]), units, rows


def _parts(sinks: Directions | None, width: int) -> tuple[Array, Array, Array]:
    if sinks is None:
        return np.zeros(0, dtype=np.uint64), np.zeros((0, width)), np.zeros(0)
    return sinks.keys, sinks.parts["units"], sinks.parts["nonzero"]


def _sum_by_key(every: Array, keys: Array, part: Array) -> Array:
    out = np.zeros((len(every), *part.shape[1:]))
    np.add.at(out, np.searchsorted(every, keys), part)
    return out
