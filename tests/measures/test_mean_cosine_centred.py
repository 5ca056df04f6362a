"""mean-cosine-centred against the definition, pair by pair about the mean."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError

# Powers of two of rows: the mean of eighths is exact, so a row that lies on it is exactly zero.
numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.sampled_from([2, 4, 8]), st.integers(1, 4))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    rows = np.asarray(rows, dtype=np.float64)
    rows = [row for row in rows - rows.mean(axis=0) if row.any()]
    cosines = [
        x @ y / (np.linalg.norm(x) * np.linalg.norm(y))
        for i, x in enumerate(rows)
        for j, y in enumerate(rows)
        if i != j
    ]
    return np.mean(cosines)


@given(rows=clouds)
def test_equals_the_average_over_all_pairs_about_the_mean(value, rows):
    assume(np.count_nonzero((rows - rows.mean(axis=0)).any(axis=1)) >= 2)
    found = value(rows, "mean-cosine-centred")
    assert found == pytest.approx(by_definition(rows), abs=1e-12)


def test_two_rows_are_opposite_as_seen_from_their_mean(value):
    rows = np.random.default_rng(1).normal(size=(2, 5)) + 3
    assert value(rows, "mean-cosine-centred") == pytest.approx(-1.0)


def test_identical_rows_have_no_direction_about_their_mean(value):
    with pytest.raises(TooFewRowsError, match="needs at least 2 usable rows, got 0"):
        value(np.full((9, 3), 0.1), "mean-cosine-centred")


def test_a_mean_far_away_does_not_drown_the_directions(value):
    rng = np.random.default_rng(2)
    rows = (rng.exponential(size=(300, 6)) ** 2 + 1e4).astype(np.float32)
    # float32 keeps a spread of 1 about 1e4 to 5e-4: the oracle sees the same rounded rows
    found = value(rows, "mean-cosine-centred")
    assert found == pytest.approx(by_definition(rows), abs=1e-6)
    assert found > 0.05


def test_a_constant_column_changes_nothing(value):
    rows = np.random.default_rng(3).exponential(size=(40, 3))
    wider = np.column_stack([rows, np.full(40, 7.3)])
    assert value(wider, "mean-cosine-centred") == pytest.approx(
        value(rows, "mean-cosine-centred")
    )


def test_zero_rows_have_a_direction_once_the_mean_is_taken(measured):
    rows = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    reading = measured(rows, "mean-cosine-centred")["mean-cosine-centred"]
    assert reading.n == 4
    assert reading.value == pytest.approx(by_definition(rows))
