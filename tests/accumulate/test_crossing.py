"""Crossing against counting rows one by one."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock
from isoscope.accumulate.bands import Crossing
from isoscope.accumulate.row_bands import position_bands
from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents


def block(lengths, *, first=0, frequency=True, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sum(lengths), 3))
    rows[0] = 0
    names = np.repeat(np.arange(first, first + len(lengths)), lengths)
    positions = np.concatenate([np.arange(n) for n in lengths]).astype(np.uint64)
    bands = rng.integers(0, 5, len(rows)).astype(np.int8) if frequency else None
    return ArrayBlock(rows, named_documents(names), positions, frequency=bands)


@pytest.mark.parametrize("lengths", [[3, 9, 20], [5] * 40])
def test_it_counts_rows_with_a_direction_by_document_and_bands(lengths, feed):
    here = block(lengths)
    seen = feed(Crossing(3), here).finalize()
    expected = np.zeros(seen.crossed.shape)
    keys = here.documents if len(lengths) <= 32 else here.documents % np.uint64(32)
    places = position_bands(here.positions)
    for row in range(1, len(here)):
        group = np.flatnonzero(seen.keys == keys[row])[0]
        expected[group, here.frequency[row], places[row]] += 1
    np.testing.assert_array_equal(seen.crossed, expected)
    assert seen.counted and seen.documents == len(lengths)


def test_parts_add_up_whatever_the_order(feed):
    parts = [block([4, 6], first=0), block([8] * 40, first=50, seed=1)]
    whole = feed(Crossing(3), *parts).state()
    for name, array in feed(Crossing(3), *reversed(parts)).state().items():
        np.testing.assert_array_equal(array, whole[name])


def test_rows_without_counts_share_the_first_band_and_are_reported(feed):
    seen = feed(Crossing(3), block([4, 6], frequency=False)).finalize()
    assert not seen.counted
    assert seen.crossed[:, 1:].sum() == 0 and seen.crossed.sum() == 9
    mixed = feed(Crossing(3), block([4]))
    mixed.merge(feed(Crossing(3), block([4], first=9, frequency=False)))
    assert not mixed.finalize().counted
    assert not Crossing.from_state(mixed.state(), width=3).counted


def test_nothing_seen_has_no_summary():
    with pytest.raises(TooFewRowsError, match="at least 1 usable rows, got 0"):
        Crossing(3).finalize()
