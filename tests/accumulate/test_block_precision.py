"""Blocks where float32 is in trouble: far from the origin, outliers, huge and tiny rows."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock

LENGTHS = [16] * 32


def cloud(n=512, d=24, seed=11):
    return np.random.default_rng(seed).normal(size=(n, d))


def exact(block):
    """Total, scatter and sum of units about the block's origin, in float64."""
    rows = block.rows.astype(np.float64)
    z = rows - block.origin.astype(np.float64)
    return z.sum(axis=0), z.T @ z, (rows / np.linalg.norm(rows, axis=1)[:, None]).sum(axis=0)


def gap(ours, theirs):
    return np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)


@pytest.mark.parametrize("mean", [0.0, 1.0, 1e2, 1e4])
def test_float32_rows_far_from_the_origin_lose_no_digits(make_block, mean):
    block = make_block((cloud() + mean).astype(np.float32), LENGTHS)
    _, scatter, units = exact(block)
    assert block.rows.dtype == np.float32
    # Rounding of one float32 sum over 512 rows is about 1e-6 of it.
    assert gap(block.scatters[0] + block.scatters[1], scatter) < 1e-6
    assert gap(block.sums.units.sum(axis=0), units) < 1e-6


def test_sums_of_squares_about_zero_would_have_lost_every_digit():
    # What the origin is there for: the same rows, the same precision, no shift.
    rows = (cloud() + 1e4).astype(np.float32)
    raw = (rows.T @ rows).astype(np.float64) - len(rows) * np.outer(rows.mean(0), rows.mean(0))
    assert gap(raw, exact(ArrayBlock(rows))[1]) > 1


def test_the_origin_is_close_to_the_mean(make_block):
    block = make_block((cloud() + 1e4).astype(np.float32), LENGTHS)
    assert np.linalg.norm(block.origin - 1e4) < np.sqrt(24)  # one spread


def test_an_outlier_row_does_not_pull_the_origin_away(make_block):
    rows = cloud()
    rows[0] *= 1e6  # the first row is always looked at
    block = make_block(rows.astype(np.float32), LENGTHS)
    assert np.linalg.norm(block.origin) < np.sqrt(24)


def skewed(seed):
    """Return rows of which one in eight is far away along an axis, with a median at zero."""
    rows = cloud(seed=seed)
    rows[:, 0] += np.where(np.arange(len(rows)) % 8 == 0, 200.0, 0.0) + 40.0
    return rows.astype(np.float32)


def test_blocks_of_a_skewed_cloud_share_an_origin():
    first = ArrayBlock(skewed(1))
    later = [ArrayBlock(skewed(seed), origin=first.origin) for seed in range(2, 6)]
    assert first._near_enough(first.rows.astype(np.float64)) is None  # neither zero nor median
    assert all(each.origin is first.origin for each in later)


def test_a_point_that_is_further_than_the_median_is_no_origin():
    near = ArrayBlock(skewed(1)).origin
    far = near - 300 * np.eye(24)[0]
    assert (ArrayBlock(skewed(2), origin=far).origin != far).any()


def test_the_others_keep_their_digits_beside_an_outlier_row(make_block):
    rows = cloud() + 1e3
    rows[0] += 1e4
    block = make_block(rows.astype(np.float32), LENGTHS)
    calm = block.cells.keys != block.documents[0]
    assert np.linalg.norm(block.origin - 1e3) < np.sqrt(24)
    for i in np.flatnonzero(calm)[:4]:
        here = block.rows[block.documents == block.cells.keys[i]].astype(np.float64)
        z = here - block.origin.astype(np.float64)
        assert block.sums.trace[i] == pytest.approx((z * z).sum(), rel=1e-5)


def test_the_origin_is_off_the_grid_of_the_rows(make_block):
    # Rows at 10,000 are multiples of 2^-10. Squares of whole numbers end in few digits, and
    # on the grid their float32 sums came out too small by 5e-7 on average.
    rows = (cloud(n=4096) + 1e4).astype(np.float32)
    block = make_block(rows, [16] * 256)
    _, scatter, _ = exact(block)
    bias = np.diag(block.scatters[0] + block.scatters[1]) / np.diag(scatter) - 1
    assert (block.origin != block.origin.astype(np.float32)).all()
    assert abs(bias.mean()) < 1e-7


def test_a_constant_column_is_exactly_constant(make_block):
    rows = (cloud() + 1e4).astype(np.float32)
    rows[:, 3] = 0.1
    block = make_block(rows, LENGTHS)
    assert not (block.scatters[0] + block.scatters[1])[3].any()


def test_zero_is_the_origin_of_a_cloud_around_zero(make_block):
    block = make_block(cloud().astype(np.float32), LENGTHS)
    assert not block.origin.any()


def test_an_origin_that_will_do_is_kept(make_block):
    offered = np.full(24, 0.01, dtype=np.float32)
    block = make_block(cloud().astype(np.float32), LENGTHS, origin=offered)
    assert block.origin is offered


def test_an_origin_too_far_away_is_not_kept(make_block):
    offered = np.full(24, 30.0, dtype=np.float32)
    block = make_block(cloud().astype(np.float32), LENGTHS, origin=offered)
    assert np.linalg.norm(block.origin) < np.sqrt(24)


def test_identical_rows_want_their_own_origin(make_block):
    offered = np.zeros(24, dtype=np.float32)
    block = make_block(np.full((512, 24), 0.1, dtype=np.float32), LENGTHS, origin=offered)
    assert (block.origin == np.float32(0.1)).all()
    assert not block.scatters[0].any() and not block.scatters[1].any()


@pytest.mark.parametrize("scale", [1e17, 1e11, 1e-18, 1e-30])
def test_rows_whose_squares_leave_float32_are_summed_in_float64(make_block, scale):
    rows = ((cloud() + 3) * scale).astype(np.float32)
    block = make_block(rows, LENGTHS)
    sums = block.sums
    total, scatter, units = exact(block)
    assert block.rows.dtype == np.float64
    assert gap(sums.total.sum(axis=0) / scale, total / scale) < 1e-9
    assert gap((block.scatters[0] + block.scatters[1]) / scale**2, scatter / scale**2) < 1e-9
    assert gap(sums.units.sum(axis=0), units) < 1e-9
    assert sums.nonzero.sum() == len(rows)
    np.testing.assert_allclose(block.squares, (rows.astype(float) ** 2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e8, 1.0, 1e-6])
def test_rows_that_float32_can_hold_stay_in_float32(make_block, scale):
    block = make_block((cloud() * scale).astype(np.float32), LENGTHS)
    assert np.isfinite(block.sums.quartic).all()
    assert block.rows.dtype == np.float32


def test_zero_rows_are_not_taken_for_tiny_ones(make_block):
    rows = cloud().astype(np.float32)
    rows[5] = 0
    block = make_block(rows, LENGTHS)
    assert block.sums.nonzero.sum() == 511
    assert block.rows.dtype == np.float32


def test_float16_rows_whose_squares_overflow_float16_are_fine(make_block):
    rows = (cloud() * 1000 + 20_000).astype(np.float16)
    block = make_block(rows, LENGTHS)
    assert block.rows.dtype == np.float32
    assert gap(block.scatters[0] + block.scatters[1], exact(block)[1]) < 1e-6


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_that_is_no_number_shows_in_the_squares_and_nothing_is_reported(
    make_block, bad, kind
):
    rows = cloud().astype(kind)
    rows[40, 3] = bad
    block = make_block(rows, LENGTHS)
    assert np.flatnonzero(~np.isfinite(block.squares)).tolist() == [40]
