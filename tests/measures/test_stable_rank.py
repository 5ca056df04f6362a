"""stable-rank against the definition."""

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
    """Squared Frobenius norm over squared spectral norm, of the centred rows."""
    centred = rows - rows.mean(axis=0)
    return np.linalg.norm(centred) ** 2 / np.linalg.norm(centred, 2) ** 2


@given(rows=clouds)
def test_equals_the_ratio_of_two_norms(value, rows):
    assume((rows != rows[0]).any())
    assert value(rows, "stable-rank") == pytest.approx(by_definition(rows), rel=1e-9)


def test_one_strong_direction_decides(value):
    rows = np.random.default_rng(1).normal(size=(4000, 9))
    rows[:, 0] *= np.sqrt(8)
    assert value(rows, "stable-rank") == pytest.approx(2.0, abs=0.1)


def test_few_rows_a_constant_column_and_copies(value):
    rows = np.random.default_rng(2).normal(size=(8, 3))
    assert value(rows[:2], "stable-rank") == pytest.approx(1.0)
    assert value(rows.T, "stable-rank") == pytest.approx(by_definition(rows.T))
    wider = np.column_stack([rows, np.full(8, 0.1)])
    assert value(wider, "stable-rank") == pytest.approx(value(rows, "stable-rank"))
    twice = np.concatenate([rows, rows])
    assert value(twice, "stable-rank") == pytest.approx(value(rows, "stable-rank"))


def test_identical_rows_have_no_rank(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((9, 3), 0.1), "stable-rank")
