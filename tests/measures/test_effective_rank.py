"""effective-rank against the definition: the entropy of a full spectrum."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError
from isoscope.measures.effective_rank import entropy_rank

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 12), st.integers(1, 6))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    centred = rows - rows.mean(axis=0)
    variances = np.linalg.svd(centred, compute_uv=False) ** 2
    shares = variances / variances.sum()
    return np.exp(-sum(p * np.log(p) for p in shares if p > 0))


@given(rows=clouds)
def test_equals_the_exponential_of_the_entropy(value, rows):
    assume((rows != rows[0]).any())
    # eigenvalues that should be zero are 1e-16 and weigh 4e-15 each
    assert value(rows, "effective-rank") == pytest.approx(by_definition(rows), rel=1e-9)


@pytest.mark.parametrize("used", [1, 3, 8])
def test_equal_dimensions_read_their_number(value, used):
    rows = np.kron(np.eye(8)[:used], [[1.0], [-1.0]])
    assert value(rows, "effective-rank") == pytest.approx(used)


def test_values_of_zero_weigh_nothing():
    assert entropy_rank(np.array([2.0, 2.0, 0.0])) == pytest.approx(2.0)


def test_fewer_rows_than_dimensions(value):
    rows = np.random.default_rng(1).normal(size=(7, 30)) + 1
    assert value(rows, "effective-rank") == pytest.approx(by_definition(rows), rel=1e-9)


def test_two_rows_a_constant_column_and_copies(value):
    rows = np.random.default_rng(2).normal(size=(8, 3))
    assert value(rows[:2], "effective-rank") == pytest.approx(1.0)
    wider = np.column_stack([rows, np.full(8, 0.1)])
    assert value(wider, "effective-rank") == pytest.approx(value(rows, "effective-rank"))
    twice = np.concatenate([rows, rows])
    assert value(twice, "effective-rank") == pytest.approx(value(rows, "effective-rank"))


def test_identical_rows_have_no_rank(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.zeros((9, 3)), "effective-rank")
