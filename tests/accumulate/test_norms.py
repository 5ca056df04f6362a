"""Norms: moments by group, and quantiles from bins that do not depend on any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.accumulate import ArrayBlock, Norms, merged
from isoscope.accumulate.norms import ACCURACY

SHARES = [0.0, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999, 1.0]


def rows_of_lengths(norms, d=4, seed=8):
    rows = np.random.default_rng(seed).normal(size=(len(norms), d))
    return rows / np.linalg.norm(rows, axis=1)[:, None] * np.asarray(norms)[:, None]


def lognormal(n, sigma=2.0):
    return np.random.default_rng(9).lognormal(0, sigma, n)


@pytest.mark.parametrize("share", SHARES)
def test_a_quantile_is_within_half_a_per_cent(make_block, feed, share):
    norms = lognormal(5001)
    summary = feed(Norms(4), make_block(rows_of_lengths(norms))).finalize()
    exact = np.quantile(norms, share, method="inverted_cdf")
    assert summary.quantile(share) == pytest.approx(exact, rel=ACCURACY * 1.001)


@given(norms=arrays(np.float64, 50, elements=st.floats(1e-6, 1e6)))
def test_any_lengths_have_quantiles_within_half_a_per_cent(make_block, feed, norms):
    summary = feed(Norms(4), make_block(rows_of_lengths(norms))).finalize()
    for share in (0.1, 0.5, 0.9):
        exact = np.quantile(norms, share, method="inverted_cdf")
        assert summary.quantile(share) == pytest.approx(exact, rel=ACCURACY * 1.001)


def test_zero_rows_are_the_shortest(make_block, feed):
    rows = rows_of_lengths([1.0] * 60)
    rows[:30] = 0
    summary = feed(Norms(4), make_block(rows)).finalize()
    assert summary.zeros == 30
    assert summary.quantile(0.0) == summary.quantile(0.5) == 0.0
    assert summary.quantile(0.51) == pytest.approx(1, rel=ACCURACY * 1.001)


def test_the_smallest_norm_is_not_zero_where_no_row_is(make_block, feed):
    summary = feed(Norms(4), make_block(rows_of_lengths([2.0, 3.0, 4.0]))).finalize()
    assert summary.quantile(0.0) == pytest.approx(2, rel=ACCURACY * 1.001)


def test_only_zeros_have_quantiles_of_zero(make_block, feed):
    summary = feed(Norms(4), make_block(np.zeros((5, 4)))).finalize()
    assert summary.quantile(0.5) == 0.0 and len(summary.bins) == 0


def test_lengths_have_the_mean_and_variance_of_the_norms(make_block, feed):
    norms = np.r_[0.0, lognormal(400, 0.5)]
    lengths = feed(Norms(4), make_block(rows_of_lengths(norms))).finalize().lengths()
    assert lengths.mean() == pytest.approx(norms.mean(), rel=1e-6)
    assert lengths.std() == pytest.approx(norms.std(), rel=1e-3)
    assert lengths == pytest.approx(np.sort(norms), rel=0.02, abs=1e-2)


def test_unit_vectors_have_lengths_of_one_whichever_way_they_are_rounded(make_block, feed):
    for off in (-1e-7, 0.0, 1e-7):  # a bin ends at 1
        norms = np.full(40, 1 + off)
        norms[::2] -= 2 * off
        lengths = feed(Norms(4), make_block(rows_of_lengths(norms))).finalize().lengths()
        assert lengths == pytest.approx(1, abs=1e-6)
    equal = feed(Norms(4), make_block(rows_of_lengths([1.003] * 9))).finalize().lengths()
    assert equal == pytest.approx(1.003, rel=1e-6)


def test_levels_say_how_many_rows_have_which_norm(make_block, feed):
    norms = [0.0, 1.0, 1.0, 10.0]
    levels, counts = feed(Norms(4), make_block(rows_of_lengths(norms))).finalize().levels()
    np.testing.assert_allclose(levels, [0, 1, 10], rtol=ACCURACY * 1.001)
    assert counts.tolist() == [1, 2, 1]


def test_bins_are_the_same_in_any_order_and_however_cut(make_blocks, feed):
    norms = lognormal(400)
    lengths = [4] * 100
    blocks = make_blocks(rows_of_lengths(norms), lengths, [10] * 10)
    whole = feed(Norms(4), *blocks)
    shuffled = np.random.default_rng(1).permutation(10)
    other = merged([feed(Norms(4), blocks[i]) for i in shuffled])
    for name in ("bins", "counts"):
        np.testing.assert_array_equal(whole.state()[name], other.state()[name])
    assert whole.finalize().quantile(0.5) == other.finalize().quantile(0.5)


@pytest.mark.parametrize("documents", [20, 100])
def test_each_group_has_the_mean_and_spread_of_its_norms(make_block, feed, documents):
    norms = lognormal(documents * 5, sigma=0.3)
    block = make_block(rows_of_lengths(norms), [5] * documents)
    summary = feed(Norms(4), block).finalize()
    keys = block.documents if documents <= 32 else block.documents % np.uint64(32)
    for i, key in enumerate(np.unique(keys)):
        here = norms[keys == key]
        assert summary.sizes[i] == len(here)
        assert summary.mean[i] == pytest.approx(np.mean(here), rel=1e-12)
        spread = sum((x - np.mean(here)) ** 2 for x in here)
        assert summary.spread[i] == pytest.approx(spread, rel=1e-9)
    assert summary.count == len(norms) and summary.documents == documents


def test_a_thin_shell_far_out_keeps_its_spread(make_block, feed):
    norms = 1e4 + np.random.default_rng(2).normal(size=2000)
    summary = feed(Norms(4), make_block(rows_of_lengths(norms))).finalize()
    mean = summary.sizes @ summary.mean / summary.count
    spread = summary.spread.sum() + summary.sizes @ (summary.mean - mean) ** 2
    assert np.sqrt(spread / 1999) == pytest.approx(np.std(norms, ddof=1), rel=1e-9)


def test_without_a_group_its_moments_are_gone(make_block, feed):
    summary = feed(Norms(4), make_block(rows_of_lengths(lognormal(40)), [4] * 10)).finalize()
    less = summary.without(2)
    assert less.groups == 9 and less.count == 36
    np.testing.assert_array_equal(less.mean, np.delete(summary.mean, 2))


def tail(norms, share):
    rows = np.zeros((len(norms), 2))
    rows[:, 0] = norms
    seen = Norms(2)
    seen.update(ArrayBlock(rows))
    return seen.finalize().tail_index(share)


@pytest.mark.parametrize("index", [2.0, 4.0, 12.0])
def test_the_index_of_a_pareto_tail_is_found(index):
    norms = 1 + np.random.default_rng(3).pareto(index, 50_000)
    # 500 rows know it to 4 %, a bin of 1 % is a twentieth of how far they exceed the first
    assert tail(norms, 0.01) == pytest.approx(index, rel=0.15)


def test_a_tail_of_fewer_than_ten_rows_is_not_judged():
    norms = 1 + np.random.default_rng(4).pareto(2, 900)
    assert tail(norms, 0.01) is None
    assert tail(np.r_[norms, norms], 0.01) is not None


def test_rows_of_one_length_have_no_tail():
    assert tail(np.ones(2000), 0.01) == np.inf
    assert tail(np.zeros(2000), 0.01) is None


@pytest.mark.parametrize(("between", "within"), [(0.2, 0.2), (0.2, 0.05), (0.0, 0.3)])
def test_variance_between_documents_is_told_from_that_within(feed, make_block, between, within):
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        apart = between * rng.standard_normal((150, 1)) + within * rng.standard_normal((150, 8))
        rows = rows_of_lengths(np.abs(1 + apart).ravel())
        summary = feed(Norms(4), make_block(rows, [8] * 150)).finalize()
        found.append(summary.between_documents(8.0 * len(rows)))
    share, variation = np.mean(found, axis=0)
    assert share == pytest.approx(between**2 / (between**2 + within**2), abs=0.15)
    assert variation == pytest.approx(between, abs=0.04)


def test_rows_on_their_own_differ_as_documents_do(feed, make_block):
    norms = np.array([1.0, 2.0, 3.0, 4.0] * 10)
    summary = feed(Norms(4), make_block(rows_of_lengths(norms))).finalize()
    share, variation = summary.between_documents(40.0)
    assert share == 1.0
    assert variation == pytest.approx(norms.std(ddof=1) / norms.mean(), rel=1e-6)
