"""uniformity against the definition, pair by pair."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError
from isoscope.measures.uniformity import on_a_sphere, uniformity
from isoscope.measures.view import Pairs

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 8), st.integers(1, 5))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    units = [row / np.linalg.norm(row) for row in rows if row.any()]
    return np.log(np.mean([np.exp(-2 * sum((u - v) ** 2)) for u, v in combinations(units, 2)]))


@given(rows=clouds)
def test_equals_the_log_of_the_mean_over_all_pairs(value, rows):
    assume(np.count_nonzero(rows.any(axis=1)) >= 2)
    assert value(rows, "uniformity") == pytest.approx(by_definition(rows), abs=1e-12)


def test_float32_rows_lose_nothing_that_shows(value):
    rows = np.random.default_rng(1).normal(size=(60, 8)).astype(np.float32) + 1
    assert value(rows, "uniformity") == pytest.approx(by_definition(rows), abs=1e-6)


def test_zero_rows_have_no_direction(measured):
    rows = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    reading = measured(rows, "uniformity")["uniformity"]
    assert (reading.value, reading.n) == (pytest.approx(-4.0), 2)
    assert "1 zero rows dropped: they have no direction" in reading.warnings


def test_copies_are_pairs_like_any_other(value):
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])
    assert value(rows, "uniformity") == pytest.approx(np.log((1 + 2 * np.exp(-8)) / 3))


def test_one_direction_reads_zero(value):
    assert value(np.full((9, 3), 0.1), "uniformity") == pytest.approx(0.0, abs=1e-12)


def test_one_usable_row_has_no_pair(value, viewed):
    with pytest.raises(TooFewRowsError, match="needs at least 2 usable rows, got 1"):
        value(np.array([[1.0, 2.0], [0.0, 0.0]]), "uniformity")
    seen = viewed(Pairs, np.random.default_rng(2).normal(size=(2, 3)))
    with pytest.raises(TooFewRowsError, match="needs at least 2 usable rows, got 1"):
        uniformity(seen.without(0))


@pytest.mark.parametrize("d", [1, 2, 3, 16, 500])
def test_the_sphere_reads_what_directions_drawn_at_random_do(d):
    rows = np.random.default_rng(d).normal(size=(10_000, d))
    cosine = rows[:, 0] / np.linalg.norm(rows, axis=1)  # with any fixed direction
    drawn = np.log(np.mean(np.exp(-4 * (1 - cosine))))
    # 10,000 draws know the mean to one per cent where it varies most, in one dimension
    assert on_a_sphere(0, d) == pytest.approx(drawn, abs=0.03)


def test_a_sample_of_many_rows_is_used_and_reported(measured):
    rows = np.random.default_rng(3).normal(size=(3000, 4))
    reading = measured(rows, "uniformity")["uniformity"]
    assert reading.n == 2048
    assert "from a sample of 2048 of 3000 rows" in reading.warnings
    # twice the reach of a 95 % interval
    assert abs(reading.value - on_a_sphere(0, 4)) < reading.high - reading.low
