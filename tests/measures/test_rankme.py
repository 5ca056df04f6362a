"""rankme against the definition: singular values of the uncentred rows, and the 1e-7."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError
from isoscope.measures.rankme import of_squares

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 12), st.integers(1, 6))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    singular = np.linalg.svd(rows, compute_uv=False)
    shares = [each / sum(singular) + 1e-7 for each in singular]
    return np.exp(-sum(p * np.log(p) for p in shares))


@given(rows=clouds)
def test_equals_the_entropy_of_the_singular_values(value, rows):
    singular = np.linalg.svd(rows, compute_uv=False)
    assume(singular[-1] > 1e-3 * singular[0])
    assert value(rows, "rankme") == pytest.approx(by_definition(rows), rel=1e-9)


@given(rows=clouds)
def test_rows_that_do_not_span_are_read_to_seven_digits(value, rows):
    assume(rows.any())
    # a singular value of zero is the root of an eigenvalue of 1e-16: 1e-8 of the largest,
    # beside the 1e-7 that the paper adds
    assert value(rows, "rankme") == pytest.approx(by_definition(rows), rel=1e-6)


def test_the_epsilon_of_the_paper_is_in_it(value):
    singular = np.array([1.0, 0.0, 0.0, 0.0])
    without = 1.0
    assert of_squares(singular**2) - without == pytest.approx(
        np.exp(-(1 + 1e-7) * np.log(1 + 1e-7) - 3e-7 * np.log(1e-7)) - 1, rel=1e-9
    )
    assert value(np.ones((9, 4)), "rankme") > 1 + 3e-6


def test_the_mean_counts_as_one_large_direction(value):
    rows = np.random.default_rng(1).normal(size=(200, 10))
    assert value(rows, "rankme") > 9.9
    assert value(rows + 100, "rankme") == pytest.approx(by_definition(rows + 100), rel=1e-9)
    assert value(rows + 100, "rankme") < 2


def test_fewer_rows_than_dimensions_have_as_many_singular_values_as_rows(value):
    rows = np.random.default_rng(2).normal(size=(7, 30)) + 1
    assert value(rows, "rankme") == pytest.approx(by_definition(rows), rel=1e-9)


def test_identical_rows_are_one_direction_but_zeros_are_none(value):
    assert value(np.full((9, 3), 0.1), "rankme") == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.zeros((9, 3)), "rankme")


def test_a_document_that_holds_every_row_but_zeros_leaves_no_interval(measured):
    rows = np.zeros((20, 3))
    rows[:2] = [[1.0, 2.0, 3.0], [3.0, 1.0, 0.0]]
    documents = np.r_[0, 0, np.arange(1, 19)]
    reading = measured(rows, "rankme", document=documents)["rankme"]
    assert reading.low is None
    assert reading.value == pytest.approx(by_definition(rows), rel=1e-6)
