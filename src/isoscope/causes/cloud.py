"""The sums of a cloud whose mean cosine is to be explained, by group and band."""

from dataclasses import dataclass, replace

import numpy as np

from isoscope.accumulate import (
    FREQUENCIES,
    POSITIONS,
    Bands,
    Crossing,
    Directions,
    contributions,
    cosine_over_pairs,
)
from isoscope.accumulate.sums import lazy
from isoscope.causes.band_pairs import Scale
from isoscope.hashing import GROUPS
from isoscope.types import Array

LEAST_ROWS = 0.05  # share of the rows below which a band is joined with its neighbour


@dataclass(frozen=True)
class BandedDirections:
    """Accumulators that saw the same rows; bands only where rows are tokens."""

    pointing: Directions
    bands: Bands | None = None
    crossing: Crossing | None = None

    @property
    def has_bands(self) -> bool:
        """Whether rows are known by their position."""
        return self.bands is not None and self.crossing is not None

    @property
    def has_frequencies(self) -> bool:
        """Whether the frequency of each token is known."""
        return self.has_bands and self.crossing is not None and self.crossing.counted

    def by_band(self) -> tuple[Array, Array]:
        """Return sums of unit vectors by band, and how many rows pairs of bands have."""
        if self.bands is None or self.crossing is None:
            one = self.pointing.parts["units"][:, None]
            return np.repeat(one, 2, axis=1), self.pointing.parts["nonzero"][:, None, None]
        crossed, units = self.crossing.parts["crossed"], self.bands.parts["units"]
        missing = len(FREQUENCIES) + POSITIONS - units.shape[1]
        units = np.pad(units, ((0, 0), (0, missing), (0, 0)))
        if not self.crossing.counted:  # one band, of which every row is
            crossed = crossed.sum(axis=1, keepdims=True)
            units = units[:, len(FREQUENCIES) :]
            units = np.concatenate([units.sum(axis=1, keepdims=True), units], axis=1)
        return units, crossed


@dataclass(frozen=True)
class CloudSums:
    """Sums of unit vectors of the rows that are not sinks, by band, and of the sinks."""

    units: Array  # (groups, F + P, d): by frequency band, then by position band
    crossed: Array  # (groups, F, P) rows
    energy: Array  # (d,) sum of squared components, all groups
    sinks: Array  # (groups, d)
    sink_rows: Array  # (groups,)
    documents: int
    frequencies_known: bool
    positions_known: bool
    scales: tuple[Scale, Scale]  # where the bands of frequency and of position lie

    @classmethod
    def of(cls, rows: BandedDirections, sinks: Directions | None = None) -> "CloudSums":
        """Return the cloud of rows, and of sinks where there are any."""
        pointing = rows.pointing
        keys, units, crossed = pointing.keys, *rows.by_band()
        sink_keys, pull, count = _parts(sinks, pointing.width)
        if sinks is not None and sinks.folded != pointing.folded:
            keys, sink_keys = keys % np.uint64(GROUPS), sink_keys % np.uint64(GROUPS)
        every = np.union1d(keys, sink_keys)
        scales = [_scale(crossed.sum(axis=(0, axis))) for axis in (2, 1)]
        return cls(
            units=_sum_by_key(every, keys, units),
            crossed=_sum_by_key(every, keys, crossed),
            energy=pointing.energy,
            sinks=_sum_by_key(every, sink_keys, pull),
            sink_rows=_sum_by_key(every, sink_keys, count),
            documents=pointing.documents,
            frequencies_known=rows.has_frequencies,
            positions_known=rows.has_bands,
            scales=(scales[0], scales[1]),
        )

    @property
    def groups(self) -> int:
        """How many groups an interval can be computed from."""
        return len(self.units)

    @property
    def sizes(self) -> Array:
        """Rows in each group."""
        return self.crossed.sum(axis=(1, 2)) + self.sink_rows

    def join_small_bands(self) -> "CloudSums":
        """Return the cloud with bands of few rows joined with their neighbours.

        A band of few rows has next to no part in the mean cosine, but its mean direction
        is mostly noise, which would be taken for a lack of what all bands have.
        """
        counts = self.crossed.sum(axis=0)
        frequency = _neighbours(counts.sum(axis=1))
        position = _neighbours(counts.sum(axis=0))
        split = counts.shape[0]
        parts = (
            _sum_bands(self.units[:, :split], frequency, 1),
            _sum_bands(self.units[:, split:], position, 1),
        )
        crossed = _sum_bands(_sum_bands(self.crossed, frequency, 1), position, 2)
        scales = (
            _joined_scale(self.scales[0], counts.sum(axis=1), frequency),
            _joined_scale(self.scales[1], counts.sum(axis=0), position),
        )
        units = np.concatenate(parts, axis=1)
        return replace(self, units=units, crossed=crossed, scales=scales)

    def total(self) -> "Totals":
        """Return the sums over all groups."""
        return self._total

    @lazy
    def _total(self) -> "Totals":
        """The sums over all groups, added up once."""
        return Totals(
            units=self.units.sum(axis=0),
            crossed=self.crossed.sum(axis=0),
            energy=self.energy,
            sinks=self.sinks.sum(axis=0),
            sink_rows=float(self.sink_rows.sum()),
        )

    def without(self, group: int) -> "CloudSums":
        """Return the cloud as if a group had never been seen."""
        keep = np.arange(self.groups) != group
        left = self.crossed[keep].sum() / self.crossed.sum()
        return replace(
            self,
            units=self.units[keep],
            crossed=self.crossed[keep],
            energy=self.energy * left,  # a group's own is not known
            sinks=self.sinks[keep],
            sink_rows=self.sink_rows[keep],
        )


@dataclass(frozen=True)
class Totals:
    """Sums over some groups."""

    units: Array  # (F + P, d)
    crossed: Array  # (F, P)
    energy: Array  # (d,)
    sinks: Array  # (d,)
    sink_rows: float

    @lazy
    def rows(self) -> float:
        """Rows that are not sinks."""
        return float(self.crossed.sum())

    @lazy
    def design(self) -> tuple[Array, Array]:
        """The rows that two bands have in common, (F + P, F + P), and the inverse."""
        design = design_of(self.crossed)
        return design, np.linalg.pinv(design, hermitian=True)

    @lazy
    def unit(self) -> Array:
        """Sum of the unit vectors that are not of sinks, (d,)."""
        return self.units[: len(self.crossed)].sum(axis=0)

    @lazy
    def mean_cosine(self) -> float:
        """Mean cosine between two different rows, sinks among them."""
        n = self.rows + self.sink_rows
        whole = self.unit + self.sinks
        return float(cosine_over_pairs(np.float64(whole @ whole), n))

    @lazy
    def by_dimension(self) -> Array:
        """Each dimension's part in the mean cosine of the rows that are not sinks, (d,)."""
        n = self.rows
        return contributions(self.unit, self.energy) / (n * (n - 1))


def design_of(crossed: Array) -> Array:
    """Return the rows that two bands have in common, (F + P, F + P), also for every group."""
    split, bands = crossed.shape[-2], sum(crossed.shape[-2:])
    out = np.zeros((*crossed.shape[:-2], bands, bands))
    each = np.arange(bands)
    counts = np.concatenate([crossed.sum(axis=-1), crossed.sum(axis=-2)], axis=-1)
    out[..., each, each] = counts
    out[..., :split, split:] = crossed
    out[..., split:, :split] = np.swapaxes(crossed, -1, -2)
    return out


def _scale(rows: Array) -> Scale:
    """Return where bands lie: one per unit, from the first to the last that has any rows."""
    seen = np.flatnonzero(rows > 0)
    first, last = (float(seen[0]), float(seen[-1])) if len(seen) else (0.0, 0.0)
    return Scale(np.arange(len(rows), dtype=float), first - 0.5, last + 0.5)


def _joined_scale(scale: Scale, rows: Array, bands: list[list[int]]) -> Scale:
    middles = [np.average(scale.middles[band], weights=rows[band]) for band in bands]
    return replace(scale, middles=np.array(middles))


def _parts(sinks: Directions | None, width: int) -> tuple[Array, Array, Array]:
    if sinks is None:
        return np.zeros(0, dtype=np.uint64), np.zeros((0, width)), np.zeros(0)
    return sinks.keys, sinks.parts["units"], sinks.parts["nonzero"]


def _sum_by_key(every: Array, keys: Array, part: Array) -> Array:
    out = np.zeros((len(every), *part.shape[1:]))
    np.add.at(out, np.searchsorted(every, keys), part)
    return out


def _neighbours(rows: Array) -> list[list[int]]:
    """Return which bands go together so that each has rows enough."""
    least = LEAST_ROWS * rows.sum()
    joined: list[list[int]] = []
    open_band: list[int] = []
    for band in range(len(rows)):
        open_band.append(band)
        if rows[open_band].sum() >= least and rows[open_band].sum() > 0:
            joined.append(open_band)
            open_band = []
    if open_band and joined:
        joined[-1] += open_band
    return joined


def _sum_bands(array: Array, bands: list[list[int]], axis: int) -> Array:
    parts = [array.take(band, axis=axis).sum(axis=axis, keepdims=True) for band in bands]
    return np.concatenate(parts, axis=axis)
