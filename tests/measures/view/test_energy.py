"""Second moments of groups told from their sketch: exact where the sketch sees everything."""

import numpy as np
import pytest

from isoscope.accumulate import Groups
from isoscope.accumulate.block import sketch_rank
from isoscope.hashing import named_documents
from isoscope.measures.view import parts
from isoscope.measures.view.parts import energy_along, factors, orthonormal_basis, traces_with


def planted(d, documents=20, each=6, seed=1, rank=None):
    """Return rows in documents; within a document they lie in `rank` dimensions."""
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(documents), each).astype(str)
    if rank is None:
        return rng.normal(size=(len(names), d)) / np.arange(1, d + 1) ** 0.5 + 1, names
    rows = [
        rng.normal(size=(each, rank)) @ rng.normal(size=(rank, d)) for _ in range(documents)
    ]
    return np.concatenate(rows), names


def scatters(rows, names, centre):
    """Return the scatter of every document about a centre, in the order of the groups."""
    keys = named_documents(names)
    parts = [rows[keys == key] - centre for key in np.unique(keys)]
    return np.array([part.T @ part for part in parts])


@pytest.mark.parametrize("d", [3, 32])
def test_a_factor_is_the_whole_scatter_where_every_axis_is_seen(summaries, d):
    assert sketch_rank(d) == d
    rows, names = planted(d)
    groups = summaries(rows, names)[Groups]
    centre = rows.mean(axis=0)
    factor, rest = factors(groups, np.tile(centre, (groups.groups, 1)))
    exact = scatters(rows, names, centre)
    largest = np.abs(exact).max()
    # sketches are kept in float32
    np.testing.assert_allclose(factor @ factor.transpose(0, 2, 1), exact, atol=1e-5 * largest)
    np.testing.assert_allclose(rest, 0.0, atol=1e-5 * largest)


def test_few_rows_in_a_wide_space_are_seen_in_full(summaries):
    rows, names = planted(100, each=6)
    groups = summaries(rows, names)[Groups]
    factor, rest = factors(groups, groups.mean)
    exact = [np.cov(rows[named_documents(names) == key].T) * 5 for key in groups.keys]
    largest = np.abs(exact).max()
    np.testing.assert_allclose(factor @ factor.transpose(0, 2, 1), exact, atol=1e-4 * largest)
    np.testing.assert_allclose(rest, 0.0, atol=1e-4 * groups.trace.max())


def test_what_a_sketch_leaves_out_is_positive_and_accounted_for(summaries):
    rows, names = planted(100, documents=10, each=80)
    groups = summaries(rows, names)[Groups]
    factor, rest = factors(groups, groups.mean)
    exact = np.array(
        [np.cov(rows[named_documents(names) == key].T) * 79 for key in groups.keys]
    )
    left = exact - factor @ factor.transpose(0, 2, 1)
    assert np.linalg.eigvalsh(left).min() > -1e-5 * np.abs(exact).max()
    np.testing.assert_allclose(rest, np.trace(left, axis1=1, axis2=2), rtol=1e-5)
    assert (rest > 0).all()


def test_a_basis_is_orthonormal_and_spans_the_factor():
    rng = np.random.default_rng(2)
    factor = rng.normal(size=(3, 9, 4))
    factor[1, :, 3] = factor[1, :, 0]  # only three dimensions
    basis = orthonormal_basis(factor)
    for part, ours in zip(factor, basis, strict=True):
        size = np.linalg.matrix_rank(part)
        np.testing.assert_allclose(ours @ (ours.T @ part), part, atol=1e-9)
        np.testing.assert_allclose(
            np.sort(np.linalg.eigvalsh(ours.T @ ours)),
            np.r_[np.zeros(4 - size), np.ones(size)],
            atol=1e-9,
        )


def test_a_factor_of_nothing_has_an_empty_basis():
    assert not orthonormal_basis(np.zeros((2, 5, 3))).any()


@pytest.mark.parametrize("d", [4, 32])
def test_energy_along_axes_is_exact_where_every_axis_is_seen(summaries, d):
    rows, names = planted(d)
    groups = summaries(rows, names)[Groups]
    centre = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    found = energy_along(groups, centre, values, vectors)
    exact = np.einsum("dj,kde,ej->kj", vectors, scatters(rows, names, centre), vectors)
    np.testing.assert_allclose(found, exact, atol=1e-5 * exact.max())


def test_energy_in_a_wide_space_is_close_to_that_of_the_group(summaries):
    rows, names = planted(100, documents=16, each=60)
    groups = summaries(rows, names)[Groups]
    centre = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    found = energy_along(groups, centre, values, vectors)
    exact = np.einsum("dj,kde,ej->kj", vectors, scatters(rows, names, centre), vectors)
    strong = values > np.median(values)
    assert np.corrcoef(found[:, strong].ravel(), exact[:, strong].ravel())[0, 1] > 0.95


@pytest.mark.parametrize("d", [4, 32])
@pytest.mark.parametrize("half", [0, 1])
def test_products_are_exact_where_every_axis_is_seen(summaries, d, half):
    rows, names = planted(d)
    groups = summaries(rows, names)[Groups]
    here, centre, other = groups.halves == half, rows.mean(axis=0), np.cov(rows.T)
    exact = np.einsum("kde,ed->k", scatters(rows, names, centre)[here], other)
    np.testing.assert_allclose(traces_with(groups, here, centre, other), exact, rtol=1e-5)


def test_products_in_a_wide_space_are_close(summaries):
    rows, names = planted(100, documents=16, each=60)
    groups = summaries(rows, names)[Groups]
    here, centre, other = np.ones(16, dtype=bool), rows.mean(axis=0), np.cov(rows.T)
    exact = np.einsum("kde,ed->k", scatters(rows, names, centre), other)
    found = traces_with(groups, here, centre, other)
    # the trace that a sketch does not show is guessed to lie as the covariance does
    np.testing.assert_allclose(found, exact, rtol=0.1)
    assert np.corrcoef(found, exact)[0, 1] > 0.9


def test_products_with_a_matrix_inside_the_sketch_have_nothing_outside(summaries):
    rows, names = planted(6)
    groups = summaries(rows, names)[Groups]
    here, centre = np.ones(20, dtype=bool), rows.mean(axis=0)
    flat = np.diag([1.0, 0, 0, 0, 0, 0])
    exact = scatters(rows, names, centre)[:, 0, 0]
    np.testing.assert_allclose(traces_with(groups, here, centre, flat), exact, rtol=1e-5)


@pytest.mark.parametrize("documents", [20, 200])
def test_cholesky_factors_give_what_eigenvalues_give(summaries, monkeypatch, documents):
    rows, names = planted(80, documents=documents, each=70)
    groups = summaries(rows, names)[Groups]
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    other, here = np.cov(rows.T), groups.halves == 0
    fast = energy_along(groups, rows.mean(axis=0), values, vectors)
    fast_traces = traces_with(groups, here, rows.mean(axis=0), other)
    monkeypatch.setattr(parts, "_SAFE", np.inf)  # no matrix is safe
    slow = energy_along(groups, rows.mean(axis=0), values, vectors)
    slow_traces = traces_with(groups, here, rows.mean(axis=0), other)
    np.testing.assert_allclose(fast, slow, rtol=1e-10)
    np.testing.assert_allclose(fast_traces, slow_traces, rtol=1e-12)


def test_a_matrix_with_tiny_eigenvalues_is_decomposed(monkeypatch):
    rng = np.random.default_rng(4)
    factor = rng.normal(size=(3, 9, 4))
    factor[1, :, 3] = factor[1, :, 0] * (1 + 1e-9)  # three dimensions, but for rounding
    seen = []
    decompose = parts._eigen_roots
    monkeypatch.setattr(parts, "_eigen_roots", lambda m: seen.append(len(m)) or decompose(m))
    basis = orthonormal_basis(factor)
    assert seen in ([1], [3])  # only that one, or all where it is not positive definite
    np.testing.assert_allclose(
        [np.trace(ours.T @ ours) for ours in basis], [4, 3, 4], atol=1e-9
    )
