"""mean-cosine against the definition, pair by pair."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError
from isoscope.measures.interval import interval
from isoscope.measures.mean_cosine import mean_cosine, mean_cosines_without_each
from isoscope.measures.view import Units

# Multiples of 1/8: zeros, copies and ties turn up by themselves, and nothing underflows.
numbers = st.integers(-80, 80).map(lambda i: i / 8)
shapes = st.tuples(st.integers(2, 8), st.integers(1, 5))
clouds = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def by_definition(rows):
    rows = [row for row in rows if np.linalg.norm(row) > 0]
    cosines = [
        x @ y / (np.linalg.norm(x) * np.linalg.norm(y))
        for i, x in enumerate(rows)
        for j, y in enumerate(rows)
        if i != j
    ]
    return np.mean(cosines)


@given(rows=clouds)
def test_equals_the_average_over_all_pairs(value, rows):
    assume(np.count_nonzero(rows.any(axis=1)) >= 2)
    assert value(rows, "mean-cosine") == pytest.approx(by_definition(rows), abs=1e-12)


def test_documents_do_not_matter(value):
    rows = np.random.default_rng(1).normal(size=(30, 4)) + 0.5
    documents = np.repeat(np.arange(10), 3)
    assert value(rows, "mean-cosine", document=documents) == pytest.approx(by_definition(rows))


def test_a_zero_row_has_no_direction_and_drops_out(measured):
    rows = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    reading = measured(rows, "mean-cosine")["mean-cosine"]
    assert reading.value == pytest.approx(np.cos(np.pi / 4))
    assert reading.n == 2
    assert "1 zero rows dropped: they have no direction" in reading.warnings


def test_copies_are_pairs_like_any_other(value):
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert value(rows, "mean-cosine") == pytest.approx(1 / 3)


def test_identical_rows_read_one_and_opposite_ones_minus_one(value):
    assert value(np.full((9, 3), 0.1), "mean-cosine") == pytest.approx(1.0)
    assert value(np.array([[1.0, 2.0], [-2.0, -4.0]]), "mean-cosine") == pytest.approx(-1.0)


def test_fewer_rows_than_dimensions_are_enough(value):
    rows = np.random.default_rng(2).normal(size=(3, 40)) + 1
    assert value(rows, "mean-cosine") == pytest.approx(by_definition(rows))


def test_one_usable_row_has_no_pair(value):
    with pytest.raises(TooFewRowsError, match="needs at least 2 usable rows, got 1"):
        value(np.array([[1.0, 2.0], [0.0, 0.0]]), "mean-cosine")


def test_the_function_reads_the_sum_of_unit_vectors(viewed):
    rows = np.random.default_rng(3).normal(size=(12, 3)) + 1
    seen = viewed(Units, rows)
    assert mean_cosine(seen) == pytest.approx(by_definition(rows))


def test_without_a_group_it_is_the_mean_cosine_of_the_others(viewed):
    rows = np.random.default_rng(4).normal(size=(20, 3)) + 1
    documents = np.repeat(np.arange(10), 2)
    seen = viewed(Units, rows, documents)
    left = {round(mean_cosine(seen.without(group)), 12) for group in range(10)}
    others = {round(by_definition(rows[documents != each]), 12) for each in range(10)}
    assert left == others


def test_one_row_that_is_left_has_no_mean_cosine_and_the_whole_no_interval():
    units = np.eye(9)[:, :4]
    seen = Units(
        sizes=np.r_[np.zeros(8), 2.0],
        units=units,
        energy=np.ones(4),
        own=np.zeros(9),
        pairs=np.zeros(9),
        documents=9,
        keys=np.arange(9, dtype=np.uint64),
    )
    with np.errstate(all="ignore"):
        assert not np.isfinite(mean_cosine(seen.without(8)))
        assert interval(seen, mean_cosine, 0.5, logarithmic=False) is None


@pytest.mark.parametrize("documents", [9, 200])
def test_all_remainders_at_once_are_those_of_each_group(viewed, documents):
    rng = np.random.default_rng(5)
    names = np.repeat(np.arange(documents), 3).astype(str)
    seen = viewed(Units, rng.normal(size=(len(names), 7)) + 0.3, names)
    each = [mean_cosine(seen.without(group)) for group in range(seen.groups)]
    assert mean_cosines_without_each(seen).tolist() == each
