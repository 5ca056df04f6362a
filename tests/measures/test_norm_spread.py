"""norm-spread against the definition."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.norm_spread import norm_spread
from isoscope.measures.view import NormMoments

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 50), st.integers(1, 5))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    norms = [np.sqrt(sum(row.astype(np.float64) ** 2)) for row in rows]
    return np.std(norms, ddof=1) / np.mean(norms)


@given(rows=clouds)
def test_equals_the_standard_deviation_over_the_mean(value, rows):
    assume(rows.any())
    assert value(rows, "norm-spread") == pytest.approx(by_definition(rows), abs=1e-9)


def test_equal_norms_have_none_whatever_the_directions(value):
    rows = np.random.default_rng(1).normal(size=(40, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert value(rows, "norm-spread") == pytest.approx(0.0, abs=1e-12)


def test_zero_rows_have_a_norm(value):
    assert value(np.array([[3.0, 4.0], [0.0, 0.0]]), "norm-spread") == pytest.approx(np.sqrt(2))


def test_one_sink_token_makes_it_large(value):
    rows = np.random.default_rng(2).normal(size=(1000, 6))
    rows[0] *= 1e4
    assert value(rows, "norm-spread") == pytest.approx(by_definition(rows))
    assert value(rows, "norm-spread") > 20


def test_small_differences_of_long_rows_survive_in_float32(value):
    rows = (1000 + np.arange(64) % 2)[:, None] * np.eye(3)[np.arange(64) % 3]
    found = value(rows.astype(np.float32), "norm-spread")
    assert found == pytest.approx(by_definition(rows), rel=1e-5)


def test_only_zeros_have_no_spread(value):
    with pytest.raises(TooFewRowsError, match="at least 2 rows that are not all zero"):
        value(np.zeros((9, 3)), "norm-spread")


def test_a_single_row_left_has_no_spread(viewed):
    seen = viewed(NormMoments, np.array([[3.0, 4.0], [1.0, 0.0]]))
    with pytest.raises(UndefinedError, match="at least 2 rows that are not all zero"):
        norm_spread(seen.without(0))


def test_its_interval_reaches_as_far_up_as_down_in_the_logarithm_or_further(measured):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(400, 6)) * rng.lognormal(sigma=0.6, size=(400, 1))
    names = np.repeat(np.arange(20), 20)
    found = measured(rows, "norm-spread", document=names)["norm-spread"]
    assert found.low * found.high > found.value**2  # a few documents are far above the others
    assert 0 < found.low < found.value < found.high
    even = np.ones((400, 6)) * np.tile([1.0, 2.0], 200)[:, None]
    even[:200] *= np.tile([1.0, 1.1], 100)[:, None]
    even[200:] *= np.tile([1.1, 1.0], 100)[:, None]
    found = measured(even, "norm-spread", document=names)["norm-spread"]
    assert found.low * found.high == pytest.approx(found.value**2, rel=1e-3)
