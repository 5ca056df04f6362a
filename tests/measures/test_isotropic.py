"""The spectrum of white rows as Marchenko and Pastur have it, against simulated ones."""

import numpy as np
import pytest

from isoscope.measures.view import isotropic_spectrum


def simulated(n, d, draws=20):
    rng = np.random.default_rng([n, d])
    every = [
        np.linalg.eigvalsh(np.cov(rng.normal(size=(n, d)), rowvar=False))[::-1]
        for _ in range(draws)
    ]
    return np.mean(every, axis=0)


@pytest.mark.parametrize(("n", "d"), [(400, 40), (120, 60), (61, 60), (60, 120), (40, 200)])
def test_eigenvalues_lie_where_white_rows_have_them(n, d):
    expected, found = simulated(n, d), isotropic_spectrum(n, d)
    # the law is of the limit: at the edges finite clouds fall short by about d^(-2/3)
    np.testing.assert_allclose(found, expected, atol=0.06 * expected[0])


@pytest.mark.parametrize(("n", "d"), [(400, 40), (120, 60), (60, 120), (2, 9)])
def test_they_add_up_to_the_number_of_dimensions(n, d):
    assert isotropic_spectrum(n, d).sum() == pytest.approx(d)


def test_the_second_moment_is_that_of_the_law():
    n, d = 1001, 500
    # mean of squares over squared mean is 1 + d / (n - 1)
    assert np.mean(isotropic_spectrum(n, d) ** 2) == pytest.approx(1.5, rel=2e-3)


def test_they_fall_and_stop_where_rows_end():
    values = isotropic_spectrum(10, 30)
    assert (np.diff(values) <= 0).all()
    assert np.count_nonzero(values) == 9


def test_endless_rows_are_flat():
    np.testing.assert_allclose(isotropic_spectrum(10**9, 8), 1.0, atol=1e-3)


def test_one_row_or_one_dimension_is_no_trouble():
    np.testing.assert_allclose(isotropic_spectrum(1, 3), [3.0, 0.0, 0.0])
    np.testing.assert_allclose(isotropic_spectrum(50, 1), [1.0])
