"""A diagonal matrix plus an outer product, against a decomposition of the sum."""

import numpy as np
import pytest

from isoscope.measures.view import outer
from isoscope.measures.view.outer import decompose_sum

EPS = np.finfo(np.float64).eps


def cloud(n, d, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.5 + np.cos(np.arange(d)) / 4
    return np.cov(rows.T).reshape(d, d), rows.mean(axis=0)


def step(d, seed=1):
    return np.random.default_rng(seed).normal(size=d)


def along_an_axis():
    matrix = cloud(300, 30)[0]
    return matrix, np.linalg.eigh(matrix)[1][:, 5]


def smaller_and_smaller_along_axes():
    matrix = cloud(300, 30)[0]
    return matrix, np.linalg.eigh(matrix)[1] @ 10.0 ** -np.arange(30)


CASES = {
    "one dimension": lambda: cloud(9, 1),
    "two dimensions": lambda: cloud(9, 2),
    "many rows": lambda: cloud(1000, 130),
    "fewer rows than dimensions": lambda: cloud(40, 100),
    "two rows": lambda: cloud(2, 60),
    "a long mean": lambda: (cloud(300, 60)[0], 1e6 * step(60)),
    "a short mean": lambda: (cloud(300, 60)[0], 1e-7 * step(60)),
    "a mean of rounding": lambda: (cloud(300, 60)[0], 1e-12 * step(60)),
    "no mean": lambda: (cloud(300, 60)[0], np.zeros(60)),
    "no spread": lambda: (np.zeros((60, 60)), step(60)),
    "white": lambda: (np.eye(60), step(60)),
    "four levels": lambda: (np.diag(np.repeat([4.0, 1.0, 3.0, 2.0], 15)), step(60)),
    "levels that differ by rounding": lambda: (np.diag(1 + 1e-15 * np.arange(60)), step(60)),
    "levels that hardly differ": lambda: (np.diag(1 + 1e-12 * np.arange(60)), step(60)),
    "steep": lambda: (np.diag(10.0 ** -np.arange(60)), step(60)),
    "along a dimension": lambda: (np.diag(np.arange(60.0)), np.eye(60)[3]),
    "along an axis": along_an_axis,
    "smaller and smaller along axes": smaller_and_smaller_along_axes,
    "tiny numbers": lambda: (1e-200 * cloud(300, 60)[0], 1e-100 * step(60)),
    "huge numbers": lambda: (1e200 * cloud(300, 60)[0], 1e100 * step(60)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_the_decomposition_of_the_sum(case):
    matrix, by = case()
    before, axes = np.linalg.eigh(matrix)
    z = by @ axes
    given = before.copy(), z.copy()
    values, turn = decompose_sum(before, z)
    vectors, whole = axes @ turn, matrix + np.outer(by, by)
    size = np.linalg.norm(whole, 2)
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(whole), rtol=0, atol=40 * EPS * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(by)), atol=100 * EPS)
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=40 * EPS * size)
    for each, as_it_was in zip((before, z), given, strict=True):
        np.testing.assert_array_equal(each, as_it_was)


def test_small_eigenvalues_keep_their_digits_beside_a_long_mean():
    values = np.array([1e-9, 1e-6, 1e-3])
    found = decompose_sum(values, np.array([0.0, 0.0, 1e4]))[0]
    np.testing.assert_allclose(found, [1e-9, 1e-6, 1e8 + 1e-3], rtol=1e-15)


def test_where_no_root_is_found_the_sum_is_decomposed(monkeypatch):
    values, z = np.sort(np.abs(step(60))), step(60, seed=2)
    expected = decompose_sum(values, z)[0]
    monkeypatch.setattr(outer, "_MOST", 1)
    np.testing.assert_allclose(decompose_sum(values, z)[0], expected, rtol=1e-9)


def test_a_root_takes_few_steps(monkeypatch):
    matrix, by = cloud(2000, 200)
    values, axes = np.linalg.eigh(matrix)
    monkeypatch.setattr(outer, "_MOST", 9)
    monkeypatch.setattr(np.linalg, "eigh", lambda _: pytest.fail("decomposed"))
    decompose_sum(values, by @ axes)
