"""Rogue dimensions: shares, kurtosis and r squared against pairs that are enumerated."""

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import isoscope as iso
from isoscope.accumulate import ArrayBlock, Directions, Reservoir
from isoscope.accumulate.survey import variants
from isoscope.api import measure
from isoscope.errors import TooFewRowsError
from isoscope.lab.dimensions.spec import cosine_r_squared, excess_kurtosis


def cloud(n=80, d=6, seed=0):
    """Return rows with a shared mean in dimension 2 and a wild one in dimension 4."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    rows[:, 2] += 3
    rows[:, 4] = rng.standard_t(3, size=n) * 4
    return rows


def pairs(rows):
    """Return CC_i of every pair of different rows, (pairs, d), as Timkey defines it."""
    first, second = np.array(list(combinations(range(len(rows)), 2))).T
    norms = np.linalg.norm(rows, axis=1)
    return rows[first] * rows[second] / (norms[first] * norms[second])[:, None]


def slow_shares(rows):
    mean = pairs(rows).mean(axis=0)
    return mean / mean.sum()


def slow_r_squared(rows, removed):
    whole, without = pairs(rows).sum(axis=1), pairs(np.delete(rows, removed, 1)).sum(axis=1)
    return stats.linregress(without, whole).rvalue ** 2, without.mean()


def test_shares_are_those_of_all_pairs():
    rows = cloud()
    seen = Directions(6)
    seen.update(ArrayBlock(rows))
    shares = seen.finalize().shares
    np.testing.assert_allclose(shares, slow_shares(rows), atol=1e-9)
    assert shares.sum() == pytest.approx(1.0)


def test_shares_of_no_cosine_are_none():
    seen = Directions(2)
    seen.update(ArrayBlock(np.eye(2)))
    assert np.isnan(seen.finalize().shares).all()


def test_kurtosis_is_that_of_scipy_and_undefined_where_nothing_varies():
    rows = cloud(500)
    rows[:, 5] = 7.25
    found = excess_kurtosis(rows)
    np.testing.assert_allclose(found[:5], stats.kurtosis(rows[:, :5]), rtol=1e-10)
    assert np.isnan(found[5])


@pytest.mark.parametrize("removed", [[2], [2, 4], [4, 2, 0]])
def test_r_squared_is_the_regression_over_all_pairs(removed):
    rows = cloud(40)
    found, mean = cosine_r_squared(rows, removed)
    slow, slow_mean = slow_r_squared(rows, removed)
    assert found == pytest.approx(slow, abs=1e-9)
    assert mean == pytest.approx(slow_mean, abs=1e-9)


def test_r_squared_is_none_where_nothing_is_left():
    rows = cloud(20)
    assert cosine_r_squared(rows, range(6)) == (None, None)
    line = np.outer(np.arange(1.0, 9), np.ones(3))
    assert cosine_r_squared(line, [0])[0] is None


def test_planted_rogue_dimensions_are_found_in_vectors_on_disk(tmp_path):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(3000, 32))
    rows[:, [3, 17]] += [12.0, -8.0]
    rows[:, 9] *= 6  # wide, but its mean is zero: not the cause of the cosine
    measure(rows, output=tmp_path / "run")
    (found,) = iso.dimensions(tmp_path / "run")
    assert found.indices(2) == [3, 17]
    assert found.wide == [9]
    first, second = found.top[:2]
    assert first.share + second.share == pytest.approx(1.0, abs=0.02)
    assert first.low < first.share < first.high
    assert first.high - first.low < 0.05
    assert found.mean_cosine > 0.5
    assert abs(found.mean_cosine_without[3]) < 0.02
    assert found.sample == 2048
    assert set(found.r_squared) == {1, 3, 5}


def test_a_run_gives_the_numbers_of_its_own_rows(run):
    """All rows fit in the sample, so everything can be computed slowly from them."""
    for found in iso.dimensions(run, sites=["resid.1", "norm.out"], variant="no-special"):
        held = iso.load(run).survey.held
        rows = next(
            parts[Reservoir].finalize().rows
            for site, names, parts in variants(held)
            if site == found.site and "no-special" in names
        ).astype(np.float64)
        shares = slow_shares(rows)
        for each in found.top:
            assert each.share == pytest.approx(shares[each.index], abs=1e-6)
        top = np.argsort(-shares)[:3].tolist()
        assert found.indices(3) == top
        assert found.r_squared[3] == pytest.approx(slow_r_squared(rows, top)[0], abs=1e-6)
        kurtosis = stats.kurtosis(rows)
        for each in found.top:
            assert each.kurtosis == pytest.approx(kurtosis[each.index], rel=1e-5, abs=1e-6)
        assert found.most_kurtotic == np.argsort(-kurtosis)[:5].tolist()
        variance = rows.var(axis=0)
        ratio = variance[found.indices(1)[0]] / variance.mean()
        assert found.top[0].variance_ratio == pytest.approx(ratio, rel=1e-5)
        assert found.sample == found.n == len(rows)


def test_every_site_of_a_run_is_read(run):
    found = iso.dimensions(run)
    assert {each.site for each in found} == {site for site, _ in iso.load(run).survey.held}


def test_progress_counts_sites(run):
    ticks = []
    found = iso.dimensions(run, progress=lambda *tick: ticks.append(tick))
    assert ticks == [(number, len(found)) for number in range(len(found) + 1)]


def test_a_run_without_what_is_needed_says_so(tmp_path):
    measure(cloud(), measures=["norm-spread"], output=tmp_path / "run")
    with pytest.raises(TooFewRowsError, match="directions, moments and a sample") as raised:
        iso.dimensions(tmp_path / "run")
    assert raised.value.slug == "summary-not-kept"


def test_reading_a_run_needs_no_torch():
    code = "import sys, isoscope; isoscope.dimensions; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
