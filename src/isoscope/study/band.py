"""Readings by band: the mean cosine of rare and frequent tokens, of early and late ones."""

import numpy as np

from isoscope.accumulate import BandsSummary
from isoscope.accumulate.survey import Place
from isoscope.measures.interval import interval
from isoscope.measures.mean_cosine import over_pairs
from isoscope.measures.view import Units
from isoscope.types import Reading


def by_band(place: Place, bands: BandsSummary, *, run: str, d: int) -> list[Reading]:
    """Return the mean cosine of every band that has two rows; the band is the group."""
    readings: list[Reading] = []
    for band, name in enumerate(bands.names):
        units = _units(bands, band)
        if units.count < 2:
            continue
        value = over_pairs(units)
        low, high = interval(units, over_pairs, value, logarithmic=False) or (None, None)
        readings.append(
            Reading(
                run=run,
                site=place[0],
                variant=place[1],
                group=name,
                step=None,
                measure="mean-cosine",
                value=value,
                low=None if low is None else max(low, -1.0),
                high=None if high is None else min(high, 1.0),
                n=units.count,
                d=d,
                warnings=() if low is not None else ("no interval: too few documents",),
            )
        )
    return readings


def _units(bands: BandsSummary, band: int) -> Units:
    """Return the unit vectors of a band, as those of all rows are looked at."""
    there = bands.nonzero[:, band] > 0
    nonzero, units = bands.nonzero[there, band], bands.units[there, band]
    nothing = np.zeros(len(nonzero))  # pairs within a document are not told apart here
    energy = np.zeros(int(units.shape[1]))
    keys = np.flatnonzero(there).astype(np.uint64)
    return Units(
        keys=keys,
        sizes=nonzero,
        documents=bands.documents,
        units=units,
        energy=energy,
        own=nothing,
        pairs=nothing,
    )
