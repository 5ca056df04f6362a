"""Clouds that other tools get wrong: far means, overflow, underflow, outliers, copies, zeros.

Oracles are float64 on the very rows that were measured, so rounding of the input is not
held against anyone.
"""

import numpy as np
import pytest

from isoscope.errors import RowError

SPECTRUM = np.arange(1, 17) ** -0.5


def plain(rows):
    """IsoScore of rows, in float64, about their mean."""
    centred = np.asarray(rows, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    covariance = centred.T @ centred / (len(rows) - 1)
    ratio = np.trace(covariance) ** 2 / (covariance**2).sum()
    return (ratio - 1) / (rows.shape[1] - 1)


def debiased(rows):
    """The unbiased estimators written by pairs of centred rows, in float64.

    tr(Sigma^2) and (tr Sigma)^2 as means over tuples of different rows, by the sums over
    the Gram matrix that such tuples leave.
    """
    rows = np.asarray(rows, dtype=np.float64)
    n, d = rows.shape
    gram = (rows - rows.mean(axis=0)) @ (rows - rows.mean(axis=0)).T
    t, f = np.trace(gram) / (n - 1), (gram**2).sum() / (n - 1) ** 2
    q = (np.diag(gram) ** 2).sum() / (n - 1)
    factor = (n - 1) / (n * (n - 2) * (n - 3))
    squared = factor * ((n - 1) * (n - 2) * f + t**2 - n * q)
    trace = factor * (2 * f + (n**2 - 3 * n + 1) * t**2 - n * q)
    return (trace / squared - 1) / (d - 1)


def cloud(n=1000, seed=1, dtype=np.float32, mean=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    return (scale * (rng.normal(size=(n, 16)) * SPECTRUM + mean)).astype(dtype)


@pytest.mark.parametrize("size", [64, 250, 1000])
def test_a_mean_ten_thousand_times_the_spread_in_float32(in_blocks, size):
    rows = cloud(mean=1e4)
    found = in_blocks(rows, "isoscore", "isoscore-debiased", size=size)
    assert found["isoscore"].value == pytest.approx(plain(rows), rel=1e-6)
    assert found["isoscore-debiased"].value == pytest.approx(debiased(rows), rel=1e-6)


def test_a_mean_in_another_direction_for_each_dimension(in_blocks):
    rng = np.random.default_rng(2)
    rows = cloud(mean=rng.normal(size=16) * 1e4)
    found = in_blocks(rows, "isoscore", "isoscore-debiased", size=100)
    assert found["isoscore"].value == pytest.approx(plain(rows), rel=1e-6)
    assert found["isoscore-debiased"].value == pytest.approx(debiased(rows), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mean_that_drifts_from_block_to_block(in_blocks, dtype):
    drift = np.linspace(0, 300, 1000)[:, None] * np.ones(16)
    rows = (cloud(dtype=np.float64) + drift).astype(dtype)
    found = in_blocks(rows, "isoscore", "isoscore-debiased", size=50)
    # the value is 1e-5, of which float32 blocks leave about four digits: the tolerance is
    # 1e-6 of the ratio behind it, which lies near 1
    exact = 1e-9 if dtype == np.float64 else 1e-6
    assert found["isoscore"].value * 15 + 1 == pytest.approx(plain(rows) * 15 + 1, rel=exact)
    assert found["isoscore-debiased"].value * 15 + 1 == pytest.approx(
        debiased(rows) * 15 + 1, rel=exact
    )


def test_a_mean_that_jumps_between_two_files(in_blocks):
    rows = np.concatenate([cloud(mean=3e3), cloud(seed=2, mean=-3e3)])
    found = in_blocks(rows, "participation", size=125)["participation"]
    assert found.value == pytest.approx(plain(rows) * 15 + 1, rel=1e-6)


def test_a_million_to_one_outlier_dimension(measured):
    rows = cloud(dtype=np.float64)
    rows[:, 5] *= 1e6
    for dtype in (np.float64, np.float32):
        found = measured(rows.astype(dtype), "isoscore", "isoscore-debiased", "top-share")
        # the score is 3e-12, what a ratio of 1 + 4e-11 leaves: one rounding of it is 1e-17
        assert found["isoscore"].value == pytest.approx(plain(rows), abs=1e-16)
        assert found["isoscore-debiased"].value == pytest.approx(debiased(rows), abs=1e-16)
        assert found["top-share"].value == pytest.approx(1.0)


def test_float16_rows_whose_squares_float16_cannot_hold(measured):
    rows = cloud(dtype=np.float16, scale=2000.0)
    with np.errstate(over="ignore"):
        assert np.isinf(rows * rows).any()
    found = measured(rows, "isoscore", "isoscore-debiased", "mean-cosine", "norm-spread")
    wide = measured(rows.astype(np.float64), *found)
    assert found["isoscore"].value == pytest.approx(plain(rows), rel=1e-6)
    assert found["isoscore-debiased"].value == pytest.approx(debiased(rows), rel=1e-6)
    for name in ("mean-cosine", "norm-spread"):
        assert found[name].value == pytest.approx(wide[name].value, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_float32_rows_whose_fourth_powers_float32_cannot_hold(measured, scale):
    rows = cloud(n=300, mean=0.5, scale=scale)
    usual = measured(cloud(n=300, mean=0.5), *NO_SCALE, by_order=True)
    found = measured(rows, *NO_SCALE, by_order=True)  # the same halves and groups
    for name, reading in usual.items():
        # rows rounded at another scale, and sums of float32 blocks
        assert found[name].value == pytest.approx(reading.value, rel=1e-5), name
        assert found[name].low == pytest.approx(reading.low, rel=1e-3), name


def test_float32_rows_whose_squares_vanish_in_float32(measured):
    usual, found = (
        measured(cloud(n=300, mean=0.5, scale=scale), *NO_SCALE, by_order=True)
        for scale in (1.0, 1e-25)
    )
    for name, reading in usual.items():
        assert found[name].value == pytest.approx(reading.value, rel=1e-5), name


def test_tiny_rows_in_documents_keep_the_width_of_their_intervals(measured):
    documents = np.repeat(np.arange(60), 5)
    usual, found = (
        measured(cloud(n=300, mean=0.5, scale=scale), "isoscore", document=documents)[
            "isoscore"
        ]
        for scale in (1.0, 1e-25)
    )
    assert found.high - found.low == pytest.approx(usual.high - usual.low, rel=1e-3)


def test_rows_too_long_for_the_sums_are_named(measured):
    with pytest.raises(RowError, match=r"expected rows no longer than 1e\+70 .* in row 0"):
        measured(cloud(n=300, mean=0.5, scale=1.0).astype(np.float64) * 1e80, "isoscore")


def test_fewer_rows_than_dimensions(measured):
    rows = np.random.default_rng(3).normal(size=(12, 100)) + 2
    found = measured(rows, "isoscore", "isoscore-debiased")
    assert found["isoscore"].value == pytest.approx(plain(rows), rel=1e-9)
    assert found["isoscore-debiased"].value == pytest.approx(debiased(rows), rel=1e-9)


def test_two_rows_are_read_where_two_are_enough(measured):
    found = measured(np.random.default_rng(4).normal(size=(2, 20)) + 1)
    assert found["isoscore"].value == pytest.approx(0.0)
    assert found["mean-cosine-centred"].value == pytest.approx(-1.0)
    needing_more = {"isoscore-debiased", "effective-rank-debiased", "alpha", "twonn"}
    assert not needing_more & found.keys()
    assert all(
        reading.low is None for name, reading in found.items() if "reference" not in name
    )


def test_one_constant_column_is_one_dimension_unused(measured):
    rows = cloud(dtype=np.float64)
    rows[:, 3] = 0.1
    found = measured(rows, "isoscore", "isoscore-debiased")
    assert found["isoscore"].value == pytest.approx(plain(rows), rel=1e-9)
    assert found["isoscore-debiased"].value == pytest.approx(debiased(rows), rel=1e-9)


def test_copies_and_zero_rows_are_rows(measured):
    rows = cloud(dtype=np.float64, n=200)
    rows[150:] = rows[0]
    rows[::7] = 0.0
    found = measured(rows, "isoscore", "isoscore-debiased")
    assert found["isoscore"].value == pytest.approx(plain(rows), rel=1e-9)
    assert found["isoscore-debiased"].value == pytest.approx(debiased(rows), rel=1e-9)
    assert any("copies of another row" in w for w in found["isoscore"].warnings)


NO_SCALE = (
    "mean-cosine",
    "mean-share",
    "participation",
    "isoscore",
    "isoscore-debiased",
    "effective-rank",
    "effective-rank-debiased",
    "rankme",
    "stable-rank",
    "top-share",
    "alpha",
    "uniformity",
    "twonn",
    "mle-dimension",
    "norm-spread",
)


@pytest.mark.parametrize("size", [1e3, 3e4, 1e5, 1e7])
def test_one_giant_row_in_float32_reads_as_it_does_in_float64(measured, size):
    rows = np.random.default_rng(8).normal(size=(2000, 16)).astype(np.float32)
    rows[77] *= np.float32(size)
    narrow = measured(rows, "isoscore-debiased")["isoscore-debiased"].value
    wide = measured(rows.astype(np.float64), "isoscore-debiased")["isoscore-debiased"].value
    assert narrow == pytest.approx(wide, rel=1e-4)


def test_a_giant_outside_the_sample_leaves_no_interval_rather_than_an_endless_one(measured):
    rows = np.random.default_rng(9).normal(size=(20_000, 16)).astype(np.float32)
    for row in (5, 6, 7, 8):  # three of four are not sampled
        rows[row] *= np.float32(1e4)
    found = measured(rows, "isoscore-debiased")["isoscore-debiased"]
    assert found.low is None or np.isfinite([found.low, found.high]).all()
