"""Bands: the mean cosine between rows of any two frequency bands, or position bands.

An additive model, mean unit vector = a(frequency band) + b(position band), is fitted by
least squares, so that a band is not charged for where its tokens stand. Everything is then
read off products of such means, with the noise of single rows taken out of them.
"""

import numpy as np

from isoscope.explain.cloud import Totals
from isoscope.types import Array


def products(totals: Totals, kept: Array) -> Array:
    """Return the products of all effects, (F + P, F + P), over the dimensions kept.

    S S' counts the product of every row with itself; what of it is noise is taken away.
    """
    n, sums, design = totals.rows, totals.units[:, kept], totals.design
    own = float(totals.energy[kept].sum()) / n
    common = float(totals.by_dimension[kept].sum())
    inverse = np.linalg.pinv(design, hermitian=True)
    return inverse @ (sums @ sums.T - (own - common) * design) @ inverse


def between_frequencies(totals: Totals, effects: Array) -> Array:
    """Return the mean cosine between rows of two frequency bands, at positions alike."""
    frequencies, positions = totals.crossed.shape
    usual = totals.crossed.sum(axis=0) / totals.rows
    row = np.hstack([np.eye(frequencies), np.tile(usual, (frequencies, 1))])
    assert row.shape == (frequencies, frequencies + positions)
    return row @ effects @ row.T


def between_positions(totals: Totals, effects: Array, bands: tuple[int, int]) -> Array:
    """Return the mean cosine between rows of two position bands, in two frequency bands."""
    frequencies, positions = totals.crossed.shape
    left, right = (
        np.hstack([np.tile(np.eye(frequencies)[band], (positions, 1)), np.eye(positions)])
        for band in bands
    )
    return left @ effects @ right.T
