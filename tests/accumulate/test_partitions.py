"""Partition functions against log-sum-exp of all rows at once."""

import numpy as np
import pytest
from scipy.special import logsumexp

from isoscope.accumulate import Partitions, merged
from isoscope.errors import MergeError, TooFewRowsError

ROWS = np.random.default_rng(41).normal(size=(240, 4)) * [1, 2, 3, 0.1]
AXES = np.linalg.qr(np.random.default_rng(42).normal(size=(4, 4)))[0]


def assert_sums(summary, block, axes):
    keys = block.documents if len(block.members.runs) <= 33 else block.documents % np.uint64(32)
    for i, key in enumerate(np.unique(keys)):
        along = block.rows[keys == key].astype(np.float64) @ axes
        np.testing.assert_allclose(summary.plus[i], logsumexp(along, axis=0), rtol=1e-12)
        np.testing.assert_allclose(summary.minus[i], logsumexp(-along, axis=0), rtol=1e-12)
        assert summary.sizes[i] == len(along)


@pytest.mark.parametrize("lengths", [[12] * 20, [3] * 80, [240]])
def test_every_group_has_its_log_sums_for_both_signs(make_block, feed, lengths):
    block = make_block(ROWS, lengths)
    summary = feed(Partitions(4, AXES), block).finalize()
    assert_sums(summary, block, AXES)
    assert summary.count == 240 and summary.documents == len(lengths)


def test_long_groups_are_projected_piece_by_piece(make_block, feed):
    rows = np.random.default_rng(43).normal(size=(3000, 4))
    block = make_block(rows, [1500, 1500])
    assert_sums(feed(Partitions(4, AXES), block).finalize(), block, AXES)


def test_cuts_and_merging_come_to_the_same(make_block, make_blocks, feed):
    lengths = [3] * 80
    blocks = make_blocks(ROWS, lengths, [10] * 8)
    whole = make_block(ROWS, lengths)
    assert_sums(feed(Partitions(4, AXES), *blocks).finalize(), whole, AXES)
    parts = [feed(Partitions(4, AXES), block) for block in blocks]
    assert_sums(merged(parts[::-1]).finalize(), whole, AXES)


@pytest.mark.parametrize("scale", [1e3, 1e10])
def test_no_row_is_too_long_for_the_exponential(make_block, feed, scale):
    block = make_block(ROWS * scale, [12] * 20)
    summary = feed(Partitions(4, AXES), block).finalize()
    assert np.isfinite(summary.plus).all() and np.isfinite(summary.minus).all()
    assert_sums(summary, block, AXES)


def test_float32_rows_are_projected_in_float64(make_block, feed):
    block = make_block(ROWS.astype(np.float32), [12] * 20)
    assert_sums(feed(Partitions(4, AXES), block).finalize(), block, AXES)


def test_without_axes_it_takes_the_coordinates(make_block, feed):
    block = make_block(ROWS, [12] * 20)
    assert_sums(feed(Partitions(4), block).finalize(), block, np.eye(4))


def test_different_axes_do_not_merge(make_block, feed):
    block = make_block(ROWS)
    with pytest.raises(MergeError, match="cannot merge Partitions"):
        feed(Partitions(4, AXES), block).merge(feed(Partitions(4, AXES[:, ::-1]), block))


def test_saved_axes_come_back(make_block, feed):
    seen = feed(Partitions(4, AXES), make_block(ROWS))
    back = Partitions.from_state(seen.state(), width=4)
    assert (back.axes == AXES).all()
    back.merge(seen)
    assert back.count == 480


def test_without_a_group_the_others_stay(make_block, feed):
    summary = feed(Partitions(4, AXES), make_block(ROWS, [12] * 20)).finalize()
    less = summary.without(5)
    assert less.groups == 19 and less.count == 228
    np.testing.assert_array_equal(less.plus, np.delete(summary.plus, 5, axis=0))


def test_one_row_is_too_few(make_block, feed):
    with pytest.raises(TooFewRowsError, match="partitions needs at least 2 usable rows, got 1"):
        feed(Partitions(4), make_block(ROWS[:1])).finalize()
