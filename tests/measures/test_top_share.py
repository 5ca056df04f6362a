"""top-share against the definition."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 12), st.integers(1, 6))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    """Razzhigaev et al. (2024): the largest squared singular value over all of them."""
    singular = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    return max(singular) ** 2 / sum(singular**2)


@given(rows=clouds)
def test_equals_the_share_of_the_largest_squared_singular_value(value, rows):
    assume((rows != rows[0]).any())
    assert value(rows, "top-share") == pytest.approx(by_definition(rows), rel=1e-9)


def test_it_is_the_inverse_of_the_stable_rank(measured):
    rows = np.random.default_rng(1).normal(size=(50, 6)) * np.arange(1, 7)
    found = measured(rows, "top-share", "stable-rank")
    assert found["top-share"].value == pytest.approx(1 / found["stable-rank"].value)


def test_few_rows_a_constant_column_and_copies(value):
    rows = np.random.default_rng(2).normal(size=(8, 3))
    assert value(rows[:2], "top-share") == pytest.approx(1.0)
    assert value(rows.T, "top-share") == pytest.approx(by_definition(rows.T))
    wider = np.column_stack([rows, np.full(8, 0.1)])
    assert value(wider, "top-share") == pytest.approx(value(rows, "top-share"))
    twice = np.concatenate([rows, rows])
    assert value(twice, "top-share") == pytest.approx(value(rows, "top-share"))


def test_identical_rows_have_no_variance_to_share(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((9, 3), 0.1), "top-share")
