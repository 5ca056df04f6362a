"""Sums of unit vectors, about the origin and about a centre."""

import numpy as np

from isoscope.accumulate import ArrayBlock, CentredDirections
from isoscope.measures.view import CentredUnits, Summaries, Units


def test_units_are_summed_and_zero_rows_are_not_counted(viewed):
    rows = np.random.default_rng(1).normal(size=(20, 3))
    rows[5] = 0.0
    seen = viewed(Units, rows)
    kept = rows[rows.any(axis=1)]
    units = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    assert (seen.count, seen.documents, seen.groups) == (19, 20, 19)
    np.testing.assert_allclose(seen.total, units.sum(axis=0))


def test_centred_units_are_those_seen_from_the_centre():
    rows = np.random.default_rng(2).normal(size=(20, 3)) + 5
    sums = CentredDirections(3, rows.mean(axis=0))
    sums.update(ArrayBlock(rows))
    every = Summaries()
    every[CentredDirections] = sums.finalize()
    centred = rows - rows.mean(axis=0)
    units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    seen = every.view(CentredUnits)
    np.testing.assert_allclose(seen.total, units.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(seen.sizes, 1)
