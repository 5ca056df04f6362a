"""alpha against the definition: a least-squares line through a full spectrum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import TooFewRowsError
from isoscope.measures.alpha import last, slope


def by_definition(rows):
    n, d = rows.shape
    values = np.sort(np.linalg.eigvalsh(np.cov(rows.T)))[::-1]
    numbers = range(5, min(d, n) // 2 + 1)
    heights = [np.log(values[k - 1]) for k in numbers]
    return -np.polyfit(np.log(list(numbers)), heights, 1)[0]


@given(seed=st.integers(0, 10**6), n=st.integers(14, 60), d=st.integers(14, 40))
def test_equals_the_fitted_slope(value, seed, n, d):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * rng.uniform(0.1, 3, size=d) + 1
    assert value(rows, "alpha") == pytest.approx(by_definition(rows), rel=1e-9, abs=1e-9)


def test_the_fit_runs_from_the_fifth_eigenvalue_to_the_middle_one():
    assert last(n=1000, d=64) == 32
    assert last(n=30, d=64) == 15
    values = np.arange(1, 65) ** -1.5
    assert slope(values, 1000) == pytest.approx(1.5)
    values[:4] *= 100.0  # not looked at
    values[32:] *= 1e-5
    assert slope(values, 1000) == pytest.approx(1.5)
    values[4] *= 2
    assert slope(values, 1000) != pytest.approx(1.5, abs=0.01)


def test_many_rows_find_the_exponent_of_their_spectrum(value):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(6000, 40)) * np.arange(1, 41) ** -0.5
    assert value(rows, "alpha") == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("n", "d"), [(100, 13), (13, 100), (2, 5)])
def test_too_few_dimensions_or_rows_have_no_slope(value, n, d):
    rows = np.random.default_rng(2).normal(size=(n, d))
    with pytest.raises(
        TooFewRowsError, match="at least 3 eigenvalues above zero from number 5"
    ):
        value(rows, "alpha")


def test_rounding_is_not_taken_for_a_spectrum(value):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(600, 10)) @ rng.normal(size=(10, 64))  # ten dimensions of 64
    with pytest.raises(TooFewRowsError, match="eigenvalues above zero from number 5 to 32"):
        value(rows, "alpha")


def test_constant_columns_in_the_tail_do_not_matter(value):
    rows = np.random.default_rng(4).normal(size=(100, 20))
    rows[:, 12:] = 0.1
    assert value(rows, "alpha") == pytest.approx(by_definition(rows), rel=1e-9)


def test_identical_rows_have_no_slope(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((90, 20), 0.1), "alpha")


def test_eigenvalues_that_vanish_without_a_group_leave_no_interval(measured):
    rows = np.repeat(np.eye(40), 3, axis=0) + 1e-3 * np.random.default_rng(0).normal(
        size=(120, 40)
    )
    rows[:, 30:] = 0
    rows[:12, 30:] = np.random.default_rng(1).normal(size=(12, 10))
    found = measured(rows, "alpha", document=np.repeat(np.arange(10), 12)).get("alpha")
    assert found is None or found.low is None or np.isfinite([found.low, found.high]).all()
