"""isoscore against the published algorithm, step by step."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.isoscore import from_ratio

numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 12), st.integers(2, 6))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    """Algorithm 1 of Rudman et al. (2022): principal components, defect, dimensions used."""
    rows = np.asarray(rows, dtype=np.float64)
    d = rows.shape[1]
    centred = rows - rows.mean(axis=0)
    axes = np.linalg.svd(centred)[2]
    variances = np.diag(np.cov((centred @ axes.T).T))
    normalised = np.sqrt(d) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normalised - 1) / np.sqrt(2 * (d - np.sqrt(d)))
    used = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d
    return (used - 1) / (d - 1)


@given(rows=clouds)
def test_equals_the_published_algorithm(value, rows):
    assume((rows != rows[0]).any())
    assert value(rows, "isoscore") == pytest.approx(by_definition(rows), abs=1e-9)


@pytest.mark.parametrize("used", [1, 2, 5, 8])
def test_equal_dimensions_of_eight(value, used):
    rows = np.kron(np.eye(8)[:used], [[1.0], [-1.0]])
    assert value(rows, "isoscore") == pytest.approx((used - 1) / 7)


def test_the_mean_is_not_seen(value):
    rows = np.random.default_rng(1).normal(size=(60, 5))
    assert value(rows + 100, "isoscore") == pytest.approx(value(rows, "isoscore"))


def test_its_interval_is_that_of_the_participation_ratio(measured):
    rows = np.random.default_rng(2).normal(size=(300, 6)) * np.arange(1, 7)
    found = measured(rows, "isoscore", "participation")
    ours, theirs = found["isoscore"], found["participation"]
    assert (ours.low, ours.high) == (
        pytest.approx(from_ratio(theirs.low, 6)),
        pytest.approx(from_ratio(theirs.high, 6)),
    )


def test_few_documents_have_no_interval(measured):
    rows = np.random.default_rng(3).normal(size=(7, 3))
    reading = measured(rows, "isoscore")["isoscore"]
    assert reading.low is reading.high is None
    assert "no interval: 7 rows, at least 8 needed" in reading.warnings


def test_one_dimension_has_no_directions_to_compare(value):
    with pytest.raises(UndefinedError, match="isoscore needs at least 2 dimensions, got 1"):
        from_ratio(1.0, 1)
    with pytest.raises(TooFewRowsError, match="isoscore needs at least 2 dimensions, got 1"):
        value(np.arange(9.0)[:, None], "isoscore")


def test_identical_rows_have_no_score(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((9, 3), 0.1), "isoscore")
