"""Which band a row is in: of rare and frequent tokens, of early and late positions."""

import numpy as np

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
