"""Rows that a sample keeps stay in place; their order, their room and their type."""

import numpy as np
import pytest

from isoscope.accumulate.kept_rows import KeptRows

ROWS = np.arange(40, dtype=np.float32).reshape(20, 2)


def keep(kept, order, rows=ROWS, *, most=8):
    """Choose among ours and all of `rows`, and say what the slow definition keeps."""
    expected = np.concatenate([kept.rows, rows])[order]
    kept.choose(np.array(order), rows, np.arange(len(rows)), most=most)
    return expected


def test_the_first_rows_are_taken_in_the_order_asked_for():
    kept = KeptRows(2)
    expected = keep(kept, [3, 1, 2])
    np.testing.assert_array_equal(kept.rows, expected)


def test_any_sequence_of_choices_keeps_what_copying_would():
    rng = np.random.default_rng(0)
    kept = KeptRows(2)
    for _ in range(200):
        rows = rng.standard_normal((rng.integers(1, 12), 2)).astype(np.float32)
        available = len(kept.rows) + len(rows)
        order = rng.permutation(available)[: rng.integers(1, min(8, available) + 1)]
        expected = keep(kept, order, rows)
        np.testing.assert_array_equal(kept.rows, expected)
        assert len(kept.room) <= 8


def test_only_the_rows_named_are_read():
    kept = KeptRows(2)
    kept.choose(np.array([1, 0]), ROWS, np.array([7, 9]), most=8)
    np.testing.assert_array_equal(kept.rows, ROWS[[9, 7]])
    kept.choose(np.array([0, 2]), ROWS, np.array([11]), most=8)
    np.testing.assert_array_equal(kept.rows, ROWS[[9, 11]])


def test_a_row_that_stays_is_not_moved():
    kept = KeptRows(2)
    keep(kept, [0, 1, 2, 3])
    room, slot = kept.room, kept.slots[2]
    keep(kept, [2, 10, 0, 7])
    assert kept.room is room
    assert kept.slots[0] == slot


def test_room_grows_twofold_and_ends_at_the_most():
    kept = KeptRows(2)
    keep(kept, [0, 1, 2])
    keep(kept, [0, 1, 2, 3], most=7)
    assert len(kept.room) == 6
    keep(kept, [*range(4), 10, 11, 12], most=7)
    assert len(kept.room) == 7


@pytest.mark.parametrize("first", [np.float32, np.float64])
def test_rows_are_float64_as_soon_as_one_part_is(first):
    kept = KeptRows(2)
    second = np.float64 if first == np.float32 else np.float32
    keep(kept, [0, 1], ROWS.astype(first))
    keep(kept, [0, 3], ROWS.astype(second))
    assert kept.rows.dtype == np.float64
