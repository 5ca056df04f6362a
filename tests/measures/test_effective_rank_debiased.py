"""effective-rank-debiased against the definition: twice the whole less its two halves."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents


def rank_of(rows):
    variances = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    shares = variances / variances.sum()
    return np.exp(-sum(p * np.log(p) for p in shares if p > 1e-15))


def half_of(documents):
    return named_documents(np.array([str(each) for each in documents])) % 2


def by_definition(rows, documents):
    half = half_of(documents)
    halves = [rank_of(rows[half == side]) for side in (0, 1)]
    return 2 * rank_of(rows) - sum(halves) / 2


@given(seed=st.integers(0, 10**6), each=st.integers(1, 4), d=st.integers(1, 12))
def test_equals_twice_the_whole_less_the_mean_of_the_halves(value, seed, each, d):
    rng = np.random.default_rng(seed)
    documents = np.repeat(rng.choice(1000, size=10, replace=False), each)
    assume(np.bincount(half_of(documents).astype(int), minlength=2).min() >= 2)
    rows = rng.normal(size=(len(documents), d)) * rng.uniform(0.1, 2, size=d) + 1
    found = value(rows, "effective-rank-debiased", document=documents)
    assert found == pytest.approx(by_definition(rows, documents), rel=1e-9)


def test_most_of_the_bias_of_few_rows_is_gone(measured):
    rows = np.random.default_rng(1).normal(size=(160, 16))
    found = measured(rows, "effective-rank", "effective-rank-debiased")
    plain, debiased = found["effective-rank"].value, found["effective-rank-debiased"].value
    assert abs(16 - debiased) < abs(16 - plain) / 3


def test_its_interval_is_as_wide_as_the_plain_one(measured):
    rows = np.random.default_rng(2).normal(size=(300, 8)) * np.arange(1, 9)
    found = measured(rows, "effective-rank", "effective-rank-debiased")
    plain, debiased = found["effective-rank"], found["effective-rank-debiased"]
    assert debiased.high - debiased.low == pytest.approx(plain.high - plain.low)
    assert debiased.high - debiased.value == pytest.approx(plain.high - plain.value)


def test_few_documents_have_no_interval(measured):
    rows = np.random.default_rng(3).normal(size=(28, 3))
    documents = np.repeat(np.arange(7), 4)
    found = measured(rows, "effective-rank-debiased", document=documents)
    reading = found["effective-rank-debiased"]
    assert reading.low is reading.high is None


def test_a_half_without_enough_rows_is_refused(value):
    rows = np.random.default_rng(4).normal(size=(60, 3))
    with pytest.raises(TooFewRowsError, match="at least 2 rows in each half of the documents"):
        value(rows, "effective-rank-debiased", document=np.zeros(60, dtype=int))


def test_identical_rows_have_no_rank(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((9, 3), 0.1), "effective-rank-debiased")


def test_a_line_reads_one(value):
    rows = np.outer(np.random.default_rng(5).normal(size=40), [1.0, 2.0, 3.0])
    assert value(rows, "effective-rank-debiased") == pytest.approx(1.0)
