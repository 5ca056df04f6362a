"""twonn against the definition: every distance, every ratio, a fitted line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.api import measure
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.twonn import of_distances


def by_definition(rows):
    """Facco et al. (2017): the empirical law of r2 / r1, its last tenth left out."""
    rows = np.unique(np.asarray(rows, dtype=np.float64), axis=0)
    ratios = []
    for i, row in enumerate(rows):
        gaps = sorted(np.linalg.norm(row - other) for j, other in enumerate(rows) if j != i)
        ratios.append(gaps[1] / gaps[0])
    n = len(ratios)
    kept = int(n * 0.9)
    x = np.log(sorted(ratios)[:kept])
    y = [-np.log(1 - i / n) for i in range(1, kept + 1)]
    return np.linalg.lstsq(x[:, None], np.array(y), rcond=None)[0][0]


@given(seed=st.integers(0, 10**6), n=st.integers(22, 40), d=st.integers(1, 6))
def test_equals_the_fitted_line_through_all_ratios(value, seed, n, d):
    rows = np.random.default_rng(seed).normal(size=(n, d)) * 3 + 5
    assert value(rows, "twonn") == pytest.approx(by_definition(rows), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_few_dimensions_are_found_in_a_wide_space(value, d):
    rng = np.random.default_rng(d)
    rows = rng.uniform(size=(1500, d)) @ rng.normal(size=(d, 20))
    assert value(rows, "twonn") == pytest.approx(d, rel=0.1)


def test_copies_count_once(value):
    rows = np.random.default_rng(1).normal(size=(40, 3))
    assert value(np.concatenate([rows, rows[:9]]), "twonn") == pytest.approx(
        by_definition(rows)
    )


def test_too_few_distinct_rows(value):
    rows = np.repeat(np.random.default_rng(2).normal(size=(21, 3)), 2, axis=0)
    with pytest.raises(TooFewRowsError, match="needs at least 22 distinct rows, got 21"):
        value(rows, "twonn")
    with pytest.raises(TooFewRowsError, match="needs at least 22 distinct rows, got 1"):
        value(np.zeros((40, 3)), "twonn")


def test_rows_that_are_all_equally_far_have_no_dimension(value):
    with pytest.raises(TooFewRowsError, match="neighbours at different distances, got equal"):
        value(np.eye(40), "twonn")
    with pytest.raises(UndefinedError, match="neighbours at different distances, got equal"):
        of_distances(np.ones((30, 2)))


def test_more_dimensions_than_rows_and_a_constant_column(value):
    rows = np.random.default_rng(3).normal(size=(25, 60))
    rows[:, 7] = 0.1
    assert value(rows, "twonn") == pytest.approx(by_definition(rows), rel=1e-9)


def test_float32_rows_far_from_zero(value):
    rows = (np.random.default_rng(4).normal(size=(60, 4)) + 1e3).astype(np.float32)
    assert value(rows, "twonn") == pytest.approx(by_definition(rows), rel=1e-5)


def test_enough_documents_give_one_row_each(measured):
    rng = np.random.default_rng(5)
    documents = np.repeat(np.arange(300), 3)
    centres = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 10))
    rows = centres[documents] + 1e-3 * rng.normal(size=(900, 10))
    known = measured(rows, "twonn", document=documents)["twonn"]
    assert known.n == 300
    assert known.value == pytest.approx(2, rel=0.2)  # that of texts, not of a text's tokens
    assert measured(rows, "twonn")["twonn"].value > 4


def test_the_value_does_not_jump_where_documents_become_many():
    """Rows of a document are close: counted in full below some number, they would tell."""
    rng = np.random.default_rng(21)
    centres = rng.normal(size=(270, 1, 12))
    rows = centres + 0.05 * rng.normal(size=(270, 6, 12))
    names = np.repeat(np.arange(270), 6)
    found = []
    for documents in range(248, 266):
        here = names < documents
        (reading,) = measure(
            rows.reshape(-1, 12)[here], measures=["twonn"], document=names[here]
        )
        found.append(reading.value)
    assert np.abs(np.diff(np.log(found))).max() < 0.1
