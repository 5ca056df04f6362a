"""mle-dimension against the definition: twenty neighbours of every row, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.mle_dimension import mle_dimension


def by_definition(rows):
    """Levina and Bickel (2004) row by row, their inverses averaged."""
    rows = np.unique(np.asarray(rows, dtype=np.float64), axis=0)
    inverses = []
    for i, row in enumerate(rows):
        gaps = sorted(np.linalg.norm(row - other) for j, other in enumerate(rows) if j != i)
        nearest = gaps[:20]
        inverses.append(sum(np.log(nearest[19] / r) for r in nearest[:19]) / 19)
    return 1 / np.mean(inverses)


@given(seed=st.integers(0, 10**6), n=st.integers(22, 40), d=st.integers(1, 6))
def test_equals_the_inverse_of_the_mean_inverse(value, seed, n, d):
    rows = np.random.default_rng(seed).normal(size=(n, d)) * 3 + 5
    assert value(rows, "mle-dimension") == pytest.approx(by_definition(rows), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_few_dimensions_are_found_in_a_wide_space(value, d):
    rng = np.random.default_rng(d)
    rows = rng.uniform(size=(1500, d)) @ rng.normal(size=(d, 20))
    assert value(rows, "mle-dimension") == pytest.approx(d, rel=0.15)


def test_copies_count_once(value):
    rows = np.random.default_rng(1).normal(size=(40, 3))
    found = value(np.concatenate([rows, rows[:9]]), "mle-dimension")
    assert found == pytest.approx(by_definition(rows))


def test_too_few_distinct_rows(value):
    rows = np.repeat(np.random.default_rng(2).normal(size=(21, 3)), 2, axis=0)
    with pytest.raises(TooFewRowsError, match="needs at least 22 distinct rows, got 21"):
        value(rows, "mle-dimension")


def test_rows_that_are_all_equally_far_have_no_dimension(value):
    with pytest.raises(TooFewRowsError, match="neighbours at different distances, got equal"):
        value(np.eye(40), "mle-dimension")
    with pytest.raises(UndefinedError, match="neighbours at different distances, got equal"):
        mle_dimension(SimpleNamespace(first=lambda k: np.ones((30, k))))


def test_a_document_that_has_most_of_the_rows_leaves_no_interval(measured):
    rows = np.random.default_rng(3).normal(size=(30, 4))
    documents = np.r_[np.zeros(20, dtype=int), np.arange(1, 11)]
    found = measured(rows, "mle-dimension", "twonn", document=documents)
    assert found["mle-dimension"].value == pytest.approx(by_definition(rows))
    assert found["mle-dimension"].low is None  # ten rows do not have twenty neighbours
    assert found["twonn"].low is not None


def test_more_dimensions_than_rows_and_a_constant_column(value):
    rows = np.random.default_rng(4).normal(size=(25, 60))
    rows[:, 7] = 0.1
    assert value(rows, "mle-dimension") == pytest.approx(by_definition(rows), rel=1e-9)
