"""Proxies: PCA by rank or variance, semi-NMF on a planted factorisation, bad ranks."""

import numpy as np
import pytest

from isoscope.errors import ConfigError, UndefinedError
from isoscope.measures.proxy import fit_pca, fit_semi_nmf, matches, semi_nmf


def cloud(seed=0, rows=400):
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(rows, 10)) * np.r_[8.0, 4.0, 2.0, np.ones(7)] + 3
    mean = made.mean(axis=0)
    return made, mean, (made - mean).T @ (made - mean)


def test_pca_takes_the_largest_variances():
    _, mean, scatter = cloud()
    found = fit_pca(mean, scatter, 400, rank=3)
    assert matches(found.basis, np.eye(10)[:, :3]).max() < 10
    values = np.linalg.eigvalsh(scatter)[::-1]
    assert found.shares == pytest.approx(values[:3] / values.sum())
    assert found.basis.T @ found.basis == pytest.approx(np.eye(3), abs=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_a_share_of_the_variance_decides_the_rank(share):
    _, mean, scatter = cloud()
    found = fit_pca(mean, scatter, 400, explained=share)
    assert found.shares.sum() >= share > found.shares[:-1].sum()


def test_semi_nmf_finds_a_planted_factorisation():
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(12, 3))
    weights = rng.exponential(size=(500, 3)) * (rng.random((500, 3)) < 0.4)
    rows = weights @ factors.T
    _, made, errors = semi_nmf(rows, 3)
    assert (np.diff(errors) <= 1e-9 * np.square(rows).sum()).all()
    assert (made >= 0).all()
    assert errors[-1] < 1e-3 * np.square(rows).sum()
    mean = rows.mean(axis=0)
    scatter = (rows - mean).T @ (rows - mean)
    proxy = fit_semi_nmf(rows, mean, scatter, 500, rank=3)
    assert matches(proxy.basis, np.linalg.qr(factors)[0]).max() < 1
    assert proxy.shares.sum() == pytest.approx(1.0, abs=1e-3)


def test_ranks_that_cannot_be_are_refused():
    rows, mean, scatter = cloud()
    with pytest.raises(ConfigError, match=r"at most 8 at grad\.1, got 9"):
        fit_pca(mean, scatter, 400, rank=9, site="grad.1")
    with pytest.raises(ConfigError, match="got 7 of 6 rows"):
        fit_pca(mean, scatter, 6, rank=7)
    with pytest.raises(ConfigError, match="got 7 of 6 rows"):
        fit_semi_nmf(rows[:6], mean, scatter, 6, rank=7)
    with pytest.raises(UndefinedError, match="got equal rows"):
        fit_pca(mean, np.zeros((10, 10)), 400, rank=2)
    assert fit_pca(mean, scatter, 400).rank == 2
