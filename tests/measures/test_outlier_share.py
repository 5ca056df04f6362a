"""outlier-share against the definition: the part of each dimension in every pair's cosine."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.accumulate.directions import contributions
from isoscope.errors import TooFewRowsError
from isoscope.measures.view import Units

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 7), st.integers(1, 6))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_dimension(rows):
    """Return the sum over pairs of u_j v_j, for each dimension j."""
    units = [row / np.linalg.norm(row) for row in rows if row.any()]
    parts = np.zeros(rows.shape[1])
    for i, u in enumerate(units):
        for k, v in enumerate(units):
            if i != k:
                parts += u * v
    return parts


def by_definition(rows):
    parts = by_dimension(rows)
    return sum(sorted(parts)[-3:]) / sum(parts)


@given(rows=clouds)
def test_equals_the_share_of_the_three_largest_over_all_pairs(value, rows):
    assume(np.count_nonzero(rows.any(axis=1)) >= 2)
    assume(abs(by_dimension(rows).sum()) > 1e-3)
    assert value(rows, "outlier-share") == pytest.approx(by_definition(rows), rel=1e-9)


def test_each_dimension_has_its_own_part(viewed):
    rows = np.random.default_rng(1).normal(size=(9, 5)) + np.arange(5)
    seen = viewed(Units, rows)
    np.testing.assert_allclose(contributions(seen.total, seen.energy), by_dimension(rows))


def test_three_loud_dimensions_of_many_explain_the_cone(value):
    rows = np.random.default_rng(2).normal(size=(400, 64))
    rows[:, [3, 11, 40]] += 30
    assert value(rows, "outlier-share") == pytest.approx(1.0, abs=0.01)


def test_a_cone_along_the_diagonal_is_owed_to_no_dimension(value):
    rows = np.random.default_rng(3).normal(size=(4000, 30)) + 1
    assert value(rows, "outlier-share") == pytest.approx(3 / 30, abs=0.02)


def test_up_to_three_dimensions_own_it_all(value):
    rows = np.random.default_rng(4).normal(size=(20, 3)) + 1
    assert value(rows, "outlier-share") == pytest.approx(1.0)


def test_identical_rows_share_by_squared_components(value):
    rows = np.tile([1.0, 1.0, 1.0, 1.0, 2.0], (9, 1))
    assert value(rows, "outlier-share") == pytest.approx(6 / 8)


def test_no_cosine_is_not_shared_out(value):
    with pytest.raises(TooFewRowsError, match="needs a mean cosine that is not zero, got zero"):
        value(np.eye(12), "outlier-share")


def test_one_usable_row_has_no_pair(value):
    with pytest.raises(TooFewRowsError, match="needs at least 2 usable rows, got 1"):
        value(np.array([[1.0, 2.0], [0.0, 0.0]]), "outlier-share")
