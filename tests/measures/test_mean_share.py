"""mean-share against the definition."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 40), st.integers(1, 5))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    rows = np.asarray(rows, dtype=np.float64)
    mean = sum(rows) / len(rows)
    return mean @ mean / np.mean([row @ row for row in rows])


@given(rows=clouds)
def test_equals_the_squared_mean_over_the_mean_square(value, rows):
    assume(rows.any())
    assert value(rows, "mean-share") == pytest.approx(by_definition(rows), abs=1e-12)


def test_identical_rows_are_all_mean(value):
    assert value(np.full((9, 3), 0.1), "mean-share") == pytest.approx(1.0)


def test_rows_that_cancel_have_none(value):
    rows = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert value(rows, "mean-share") == pytest.approx(0.0)


def test_zero_rows_count_as_rows(value):
    assert value(np.array([[1.0, 0.0], [0.0, 0.0]]), "mean-share") == pytest.approx(0.5)


def test_only_zeros_have_no_length_to_share(value):
    with pytest.raises(TooFewRowsError, match="needs rows that are not zero, got only zeros"):
        value(np.zeros((9, 3)), "mean-share")


def test_a_mean_far_away_in_float32_keeps_its_digits(value):
    rng = np.random.default_rng(1)
    rows = (rng.normal(size=(500, 8)) + 1e4).astype(np.float32)
    # 1 - share is 1e-8: only the distance to 1 shows whether anything was lost
    oracle = 1 - by_definition(rows)
    assert 1 - value(rows, "mean-share") == pytest.approx(oracle, rel=1e-5)
