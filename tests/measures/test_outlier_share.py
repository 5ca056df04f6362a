"""outlier-share against the definition: the part of each dimension in every pair's cosine."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.accumulate.directions import contributions
from isoscope.api import measure
from isoscope.errors import TooFewRowsError
from isoscope.hashing import ordinal_documents
from isoscope.measures.outlier_share import optimism, outlier_share
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


def luck_by_definition(rows, halves):
    """Return the luck of the three largest, pair by pair in each half."""
    one, other = (
        by_dimension(rows[halves == h]) / ((halves == h).sum() * ((halves == h).sum() - 1))
        for h in (1, 0)
    )
    first, second = (sorted(range(len(c)), key=c.__getitem__)[-3:] for c in (one, other))
    luck = sum(one[j] - other[j] for j in first) + sum(other[j] - one[j] for j in second)
    return luck / 2 / 2**0.5


@given(rows=clouds)
def test_equals_the_share_of_the_three_largest_over_all_pairs(value, rows):
    assume(np.count_nonzero(rows.any(axis=1)) >= 2)
    assume(abs(by_dimension(rows).sum()) > 1e-3)
    assert value(rows, "outlier-share") == pytest.approx(by_definition(rows), rel=1e-9)


def test_the_luck_of_the_chosen_is_what_halves_do_not_share(viewed):
    rows = np.random.default_rng(7).normal(size=(300, 20)) + 1
    documents = ordinal_documents("rows", np.arange(300, dtype=np.uint64))
    found = optimism(viewed(Units, rows))
    # The energy of a half is taken as its share of the whole.
    expected = luck_by_definition(rows, documents % np.uint64(2))
    assert found == pytest.approx(expected, rel=0.05)
    pairs = 300 * 299
    plain = by_definition(rows)
    expected = plain - found * pairs / by_dimension(rows).sum()
    assert outlier_share(viewed(Units, rows)) == pytest.approx(expected, rel=1e-9)
    assert 0 < found * pairs < 0.3 * by_dimension(rows).sum() * plain


def test_where_halves_choose_the_same_nothing_is_taken_off(value, viewed):
    rows = np.random.default_rng(8).normal(size=(300, 20)) + 1
    rows[:, [2, 9, 13]] += [2, 3, 4]
    assert optimism(viewed(Units, rows)) == pytest.approx(0, abs=1e-15)
    assert value(rows, "outlier-share") == pytest.approx(by_definition(rows), rel=1e-9)


@pytest.mark.parametrize(("n", "documents"), [(500, None), (1000, 40)])
def test_equal_dimensions_read_three_over_their_number(n, documents):
    rng = np.random.default_rng(9)
    found, inside = [], 0
    for _ in range(12):
        rows, how = rng.normal(size=(n, 64)) + 1, {}
        if documents is not None:
            names = np.repeat(np.arange(documents), n // documents)
            rows += 0.6 * rng.normal(size=(documents, 64))[names]
            how = {"document": names}
        (reading,) = measure(rows, measures=["outlier-share"], **how)
        found.append(reading.value)
        inside += reading.low <= 3 / 64 <= reading.high
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert abs(np.mean(found) - 3 / 64) < 3 * error
    assert error < 0.05 * 3 / 64 or documents is not None
    assert inside >= 10


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
