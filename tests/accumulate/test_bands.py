"""Bands of frequency and of position, each with its own sum of unit vectors."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, BandCells, merged
from isoscope.accumulate.row_bands import (
    FREQUENCIES,
    POSITIONS,
    band_name,
    frequency_bands,
    position_bands,
)
from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents


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
    found = feed(BandCells(4), block).finalize().bands()
    units = block.rows / np.linalg.norm(block.rows, axis=1, keepdims=True)
    labels = (block.frequency.astype(int), len(FREQUENCIES) + position_bands(block.positions))
    for label in labels:
        for band in np.unique(label):
            expected = units[label == band].sum(axis=0)
            np.testing.assert_allclose(found.units[:, band].sum(axis=0), expected, atol=1e-6)
            assert found.nonzero[:, band].sum() == (label == band).sum()
    assert len(found.names) == 5 + 5  # positions up to 11 need five bands


def test_without_frequencies_there_are_positions_only(make_block, feed):
    block = make_block(np.random.default_rng(0).normal(size=(120, 4)), [12] * 10)
    found = feed(BandCells(4), block).finalize().bands()
    assert not found.nonzero[:, : len(FREQUENCIES)].any()
    assert found.nonzero.sum() == 120


def test_a_short_part_and_a_long_one_merge(make_block, feed):
    rng = np.random.default_rng(1)
    short = feed(BandCells(3), make_block(rng.normal(size=(4, 3)), [2, 2]))
    long = feed(BandCells(3), make_block(rng.normal(size=(40, 3)), [40], first=2))
    both = [merged(pair).finalize().bands() for pair in ((short, long), (long, short))]
    np.testing.assert_allclose(both[0].units, both[1].units, atol=1e-6)
    assert both[0].names[-1] == "position 32-63"


def documents_of(lengths, *, first=0, frequency=True, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sum(lengths), 3))
    rows[0] = 0
    names = np.repeat(np.arange(first, first + len(lengths)), lengths)
    positions = np.concatenate([np.arange(n) for n in lengths]).astype(np.uint64)
    bands = rng.integers(0, 5, len(rows)).astype(np.int8) if frequency else None
    return ArrayBlock(rows, named_documents(names), positions, frequency=bands)


@pytest.mark.parametrize("lengths", [[3, 9, 20], [5] * 40])
def test_it_sums_rows_with_a_direction_by_document_and_pair_of_bands(lengths, feed):
    here = documents_of(lengths)
    seen = feed(BandCells(3), here).finalize()
    counts, units = np.zeros(seen.nonzero.shape), np.zeros(seen.units.shape)
    keys = here.documents if len(lengths) <= 32 else here.documents % np.uint64(32)
    places = position_bands(here.positions)
    for row in range(1, len(here)):
        group = np.flatnonzero(seen.keys == keys[row])[0]
        counts[group, here.frequency[row], places[row]] += 1
        unit = here.rows[row] / np.linalg.norm(here.rows[row])
        units[group, here.frequency[row], places[row]] += unit
    np.testing.assert_array_equal(seen.nonzero, counts)
    np.testing.assert_allclose(seen.units, units, atol=1e-6)
    assert seen.counted and seen.documents == len(lengths)


def test_documents_that_become_groups_add_up_whatever_the_order(feed):
    few, many = documents_of([4, 6]), documents_of([8] * 40, first=50, seed=1)
    expected = feed(BandCells(3), few, many).finalize()
    found = feed(BandCells(3), many, few).finalize()
    np.testing.assert_array_equal(found.keys, expected.keys)
    np.testing.assert_array_equal(found.nonzero, expected.nonzero)
    np.testing.assert_allclose(found.units, expected.units, atol=1e-6)


def test_rows_without_counts_share_the_first_band_and_are_reported(feed):
    seen = feed(BandCells(3), documents_of([4, 6], frequency=False)).finalize()
    assert not seen.counted
    assert seen.nonzero.shape[1] == 1 and seen.nonzero.sum() == 9
    mixed = feed(BandCells(3), documents_of([4]))
    mixed.merge(feed(BandCells(3), documents_of([4], first=9, frequency=False)))
    assert not mixed.finalize().counted
    assert not BandCells.from_state(mixed.state(), width=3).counted


def test_nothing_seen_has_no_summary():
    with pytest.raises(TooFewRowsError, match="at least 1 usable rows, got 0"):
        BandCells(3).finalize()
