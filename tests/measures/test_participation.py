"""participation against the definition: eigenvalues of the covariance by a full eigh."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError
from isoscope.measures.participation import ratio

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 12), st.integers(1, 6))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    rows = np.asarray(rows, dtype=np.float64)
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(rows.T)))
    return sum(values) ** 2 / sum(values**2)


@given(rows=clouds)
def test_equals_the_ratio_of_the_eigenvalues(value, rows):
    assume((rows != rows[0]).any())
    assert value(rows, "participation") == pytest.approx(by_definition(rows), rel=1e-9)


@pytest.mark.parametrize("used", [1, 2, 5, 8])
def test_equal_dimensions_read_their_number(value, used):
    signs = np.array([[1.0, -1.0]]).T
    rows = np.kron(np.eye(8)[:used], signs)  # +-1 along each used axis
    assert value(rows, "participation") == pytest.approx(used)


def test_the_ratio_takes_no_notice_of_scale():
    values = np.array([4.0, 2.0, 1.0])
    for scale in (1e-160, 1.0, 1e150):
        assert ratio(scale * values) == pytest.approx(49 / 21)


def test_two_rows_span_one_dimension(value):
    rows = np.random.default_rng(1).normal(size=(2, 9)) + 4
    assert value(rows, "participation") == pytest.approx(1.0)


def test_fewer_rows_than_dimensions(value):
    rows = np.random.default_rng(2).normal(size=(7, 30)) + 1
    assert value(rows, "participation") == pytest.approx(by_definition(rows), rel=1e-9)


def test_a_constant_column_carries_no_variance(value):
    rows = np.random.default_rng(3).normal(size=(40, 3))
    wider = np.column_stack([rows, np.full(40, 7.3)])
    assert value(wider, "participation") == pytest.approx(value(rows, "participation"))


def test_copies_of_every_row_change_nothing(value):
    rows = np.random.default_rng(4).normal(size=(40, 3))
    twice = np.concatenate([rows, rows])
    assert value(twice, "participation") == pytest.approx(value(rows, "participation"))


def test_identical_rows_have_no_spectrum(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((9, 3), 0.1), "participation")


def test_spread_that_one_document_has_alone_leaves_no_interval(measured):
    rows = np.zeros((22, 5))
    rows[:2] = [[1.0, 2.0, 0.0, 3.0, 1.0], [-1.0, -2.0, 0.0, -3.0, -1.0]]
    documents = np.r_[0, 0, np.arange(1, 21)]
    found = measured(
        rows,
        *("participation", "isoscore", "isoscore-star", "effective-rank"),
        *("rankme", "stable-rank", "top-share"),
        document=documents,
    )
    assert {reading.low for reading in found.values()} == {None}
    assert found["participation"].value == pytest.approx(1.0)
