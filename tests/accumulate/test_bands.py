"""Bands of frequency and of position, each with its own sum of unit vectors."""

import numpy as np
import pytest

from isoscope.accumulate import Bands, merged
from isoscope.accumulate.row_bands import (
    FREQUENCIES,
    POSITIONS,
    band_name,
    frequency_bands,
    position_bands,
)


def test_positions_fall_into_bands_of_doubling_width():
    bands = position_bands(np.array([0, 1, 2, 3, 4, 7, 8, 511, 16384, 10**9], dtype=np.uint64))
    assert bands.tolist() == [0, 1, 2, 2, 3, 3, 4, 9, 15, 15]


def test_a_band_is_called_by_what_is_in_it():
    names = [band_name(len(FREQUENCIES) + band) for band in range(POSITIONS)]
    assert names[:4] == ["position 0", "position 1", "position 2-3", "position 4-7"]
    assert names[-1] == "position 16384 and later"
    assert band_name(0) == "frequency below 1e-5"


def test_frequency_is_a_share_of_all_tokens():
    counts = np.array([1, 11, 111, 1_111, 11_111, 187_655, 0])
    assert frequency_bands(counts).tolist() == [0, 1, 2, 3, 4, 4, 0]
    assert frequency_bands(np.zeros(3)).tolist() == [0, 0, 0]


@pytest.fixture
def block(make_block):
    rng = np.random.default_rng(0)
    rows, tokens = rng.normal(size=(120, 4)) + 1.0, rng.integers(0, 5, size=120)
    return make_block(rows, [12] * 10, tokens=tokens, frequency=tokens.astype(np.int8))


def test_each_band_sums_the_unit_vectors_of_its_rows(block, feed):
    found = feed(Bands(4), block).finalize()
    units = block.rows / np.linalg.norm(block.rows, axis=1, keepdims=True)
    labels = (block.frequency.astype(int), len(FREQUENCIES) + position_bands(block.positions))
    for label in labels:
        for band in np.unique(label):
            expected = units[label == band].sum(axis=0)
            np.testing.assert_allclose(found.units[:, band].sum(axis=0), expected, atol=1e-12)
            assert found.nonzero[:, band].sum() == (label == band).sum()
    assert len(found.names) == 5 + 5  # positions up to 11 need five bands


def test_without_frequencies_there_are_positions_only(make_block, feed):
    block = make_block(np.random.default_rng(0).normal(size=(120, 4)), [12] * 10)
    found = feed(Bands(4), block).finalize()
    assert not found.nonzero[:, : len(FREQUENCIES)].any()
    assert found.nonzero.sum() == 120


def test_a_short_part_and_a_long_one_merge(make_block, feed):
    rng = np.random.default_rng(1)
    short = feed(Bands(3), make_block(rng.normal(size=(4, 3)), [2, 2]))
    long = feed(Bands(3), make_block(rng.normal(size=(40, 3)), [40], first=2))
    both = [merged(pair).finalize() for pair in ((short, long), (long, short))]
    np.testing.assert_allclose(both[0].units, both[1].units, atol=1e-12)
    assert both[0].names[-1] == "position 32-63"
