"""Second moments of groups told from their sketch: exact where the sketch sees everything."""

import numpy as np
import pytest

from isoscope.accumulate import Groups
from isoscope.accumulate.block import sketch_rank
from isoscope.hashing import named_documents
from isoscope.measures.view import parts
from isoscope.measures.view.parts import (
    PrincipalAxes,
    energies_along,
    energy_along,
    factors,
    traces_with,
)


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
    factor = factors(groups.about(np.tile(centre, (groups.groups, 1)))[1])
    exact = scatters(rows, names, centre)
    largest = np.abs(exact).max()
    # sketches are kept in float32
    np.testing.assert_allclose(factor @ factor.transpose(0, 2, 1), exact, atol=1e-5 * largest)


def test_few_rows_in_a_wide_space_are_seen_in_full(summaries):
    rows, names = planted(100, each=6)
    groups = summaries(rows, names)[Groups]
    factor = factors(groups.sketch)
    exact = [np.cov(rows[named_documents(names) == key].T) * 5 for key in groups.keys]
    largest = np.abs(exact).max()
    np.testing.assert_allclose(factor @ factor.transpose(0, 2, 1), exact, atol=1e-4 * largest)


def test_what_a_sketch_leaves_out_is_positive(summaries):
    rows, names = planted(100, documents=10, each=80)
    groups = summaries(rows, names)[Groups]
    factor = factors(groups.sketch)
    exact = np.array(
        [np.cov(rows[named_documents(names) == key].T) * 79 for key in groups.keys]
    )
    left = exact - factor @ factor.transpose(0, 2, 1)
    assert np.linalg.eigvalsh(left).min() > -1e-5 * np.abs(exact).max()
    assert (np.trace(left, axis1=1, axis2=2) > 0).all()


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


def test_sums_over_short_axes_follow_the_group_whatever_its_size(summaries):
    """No sketch shows each short axis of a large group, but it shows what they add up to."""
    rng = np.random.default_rng(3)
    lengths = np.repeat([40, 320], 16)
    names = np.repeat(np.arange(32), lengths).astype(str)
    short = np.repeat(rng.lognormal(0, 0.1, 32), lengths)[:, None]  # documents differ there
    rows = rng.normal(size=(len(names), 200)) / np.arange(1, 201) ** 0.4
    rows[:, 40:] *= short
    groups = summaries(rows, names)[Groups]
    centre = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    found = energy_along(groups, centre, values, vectors)
    exact = np.einsum("dj,kde,ej->kj", vectors, scatters(rows, names, centre), vectors)
    np.testing.assert_allclose(found.sum(axis=0), exact.sum(axis=0), rtol=1e-5)
    shares = (groups.sizes / len(rows))[:, None] * exact.sum(axis=0)
    for axes in (slice(0, 100), slice(0, 150)):
        ours, theirs = (
            ((each - shares)[:, axes] / values[axes]).sum(axis=1) for each in (found, exact)
        )
        assert np.corrcoef(ours, theirs)[0, 1] > 0.9
        assert 0.8 < np.linalg.norm(ours) / np.linalg.norm(theirs) < 1.25


@pytest.mark.parametrize("d", [4, 32])
@pytest.mark.parametrize("half", [0, 1])
def test_products_are_exact_where_every_axis_is_seen(summaries, d, half):
    rows, names = planted(d)
    groups = summaries(rows, names)[Groups]
    here, centre, other = groups.halves == half, rows.mean(axis=0), np.cov(rows.T)
    own = scatters(rows, names, centre)[here]
    found = traces_with(groups, here, centre, own.sum(axis=0), other)
    np.testing.assert_allclose(found, np.einsum("kde,ed->k", own, other), rtol=1e-5)


def test_products_in_a_wide_space_are_close(summaries):
    rows, names = planted(100, documents=16, each=60)
    groups = summaries(rows, names)[Groups]
    here, centre, other = np.ones(16, dtype=bool), rows.mean(axis=0), np.cov(rows.T)
    own = scatters(rows, names, centre)
    exact = np.einsum("kde,ed->k", own, other)
    found = traces_with(groups, here, centre, own.sum(axis=0), other)
    np.testing.assert_allclose(found, exact, rtol=0.05)
    np.testing.assert_allclose(found.sum(), exact.sum(), rtol=1e-9)
    assert np.corrcoef(found, exact)[0, 1] > 0.95


def test_products_with_a_matrix_inside_the_sketch_have_nothing_outside(summaries):
    rows, names = planted(6)
    groups = summaries(rows, names)[Groups]
    here, centre = np.ones(20, dtype=bool), rows.mean(axis=0)
    flat = np.diag([1.0, 0, 0, 0, 0, 0])
    own = scatters(rows, names, centre)
    found = traces_with(groups, here, centre, own.sum(axis=0), flat)
    np.testing.assert_allclose(found, own[:, 0, 0], rtol=1e-5)


@pytest.mark.parametrize("documents", [20, 200])
def test_cholesky_factors_give_what_eigenvalues_give(summaries, monkeypatch, documents):
    rows, names = planted(80, documents=documents, each=70)
    groups = summaries(rows, names)[Groups]
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    other, here = np.cov(rows.T), groups.halves == 0
    fast = energy_along(groups, rows.mean(axis=0), values, vectors)
    half = rows[np.isin(named_documents(names) % np.uint64(2), 0)] - rows.mean(axis=0)
    given = here, rows.mean(axis=0), half.T @ half, other
    fast_traces = traces_with(groups, *given)
    monkeypatch.setattr(parts, "_SAFE", np.inf)  # no matrix is safe
    slow = energy_along(groups, rows.mean(axis=0), values, vectors)
    slow_traces = traces_with(groups, *given)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-10 * fast.max())
    np.testing.assert_allclose(fast_traces, slow_traces, rtol=1e-12)


def test_a_matrix_with_tiny_eigenvalues_is_decomposed(monkeypatch):
    rng = np.random.default_rng(4)
    factor = rng.normal(size=(3, 9, 4))
    factor[1, :, 3] = factor[1, :, 0] * (1 + 1e-9)  # three dimensions, but for rounding
    seen = []
    decompose = parts._eigen_roots
    monkeypatch.setattr(parts, "_eigen_roots", lambda m: seen.append(len(m)) or decompose(m))
    basis = factor @ parts._inverse_root(factor.transpose(0, 2, 1) @ factor)
    assert seen in ([1], [3])  # only that one, or all where it is not positive definite
    np.testing.assert_allclose(
        [np.trace(ours.T @ ours) for ours in basis], [4, 3, 4], atol=1e-9
    )


@pytest.mark.parametrize(("d", "documents"), [(24, 20), (100, 20), (100, 90)])
def test_energies_about_zero_are_those_of_sketches_moved_to_zero(summaries, d, documents):
    rows, names = planted(d, documents=documents, each=70)
    groups = summaries(rows, names)[Groups]
    mean = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    raw, others = np.linalg.eigh(rows.T @ rows / len(rows))
    axes = PrincipalAxes(mean, vectors, {False: values, True: raw}, vectors.T @ others)
    found = energies_along(groups, axes)
    for about_zero, expected in [
        (False, energy_along(groups, mean, values, vectors)),
        (True, energy_along(groups, np.zeros(d), raw, others)),
    ]:
        np.testing.assert_allclose(
            found[about_zero], expected, rtol=1e-10, atol=1e-12 * expected.max()
        )


@pytest.mark.parametrize("n", [1, 5, 12, 22, 48])
def test_a_triangle_is_inverted_by_its_halves(n):
    rng = np.random.default_rng(n)
    lower = np.tril(rng.normal(size=(7, n, n))) + 3 * np.eye(n)
    found = parts._inverse_of_lower(lower)
    expected = np.linalg.inv(lower)
    np.testing.assert_allclose(found, expected, atol=1e-13 * np.abs(expected).max())
    if n >= 12:
        assert not np.triu(found, 6 * 2).any()
