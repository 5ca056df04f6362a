"""Intervals against the textbook: Student's t from SciPy, the delete-a-group jackknife."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.interval import (
    LEAST_DOCUMENTS,
    around,
    effective_freedom,
    far_quantile,
    interval,
    quantile,
    spread,
    standard_error,
)
from isoscope.measures.mean_cosine import mean_cosine
from isoscope.measures.view import GroupView, Units

numbers = st.floats(-100, 100)


@dataclass(frozen=True, kw_only=True)
class GroupedNumbers(GroupView):
    """A view of one number per row: groups of rows, and their sums."""

    arrays = ("totals",)
    totals: np.ndarray

    @classmethod
    def of(cls, summaries):
        raise NotImplementedError


def without_each(view, compute):
    return np.array([compute(view.without(group)) for group in range(view.groups)])


def mean(view):
    return float(view.totals.sum() / view.sizes.sum())


def grouped(totals, sizes, documents):
    keys = np.arange(len(sizes))
    return GroupedNumbers(keys=keys, sizes=sizes, documents=documents, totals=totals)


def seen(values, documents=None):
    values = np.asarray(values, dtype=np.float64)
    documents = len(values) if documents is None else documents
    return grouped(values, np.ones(len(values)), documents)


@given(values=arrays(np.float64, st.integers(8, 40), elements=numbers))
def test_the_error_of_a_mean_of_equal_groups_is_the_usual_one(values):
    view = seen(values)
    without = without_each(view, mean)
    found = standard_error(mean(view), without, view.sizes)
    # leaving one of n values out in turn is exact for a mean
    assert found == pytest.approx(stats.sem(values), rel=1e-9, abs=1e-9)


@given(
    values=arrays(np.float64, 10, elements=numbers),
    sizes=st.lists(st.integers(1, 9), min_size=10, max_size=10),
)
def test_groups_of_different_sizes_count_by_how_far_the_rest_lies_off(values, sizes):
    sizes = np.array(sizes, dtype=np.float64)
    view = grouped(values * sizes, sizes, 10)
    # the delete-a-group jackknife of a textbook: 9/10 sum (mean without k - their mean)^2
    left = [np.average(np.delete(values, k), weights=np.delete(sizes, k)) for k in range(10)]
    textbook = np.sqrt(9 / 10 * np.square(left - np.mean(left)).sum())
    found = standard_error(mean(view), without_each(view, mean), sizes)
    assert found == pytest.approx(textbook, rel=1e-9, abs=1e-9)


def test_around_is_symmetric_in_the_value_or_in_its_logarithm():
    reach = quantile(9) * 0.1
    assert around(2.0, 0.1, 10, logarithmic=False) == pytest.approx((2 - reach, 2 + reach))
    low, high = around(2.0, 0.1, 10, logarithmic=True)
    assert (low, high) == pytest.approx((2 * np.exp(-reach), 2 * np.exp(reach)))
    assert low * high == pytest.approx(4.0)


def test_the_interval_of_a_mean_is_the_one_of_the_t_test():
    values = np.random.default_rng(1).uniform(size=12)  # no value stands out
    low, high = interval(seen(values), mean, values.mean(), logarithmic=False)
    textbook = stats.t.interval(0.95, 11, loc=values.mean(), scale=stats.sem(values))
    assert (low, high) == pytest.approx(textbook, abs=1e-3)


@pytest.mark.parametrize("giant", [0.3, 0.6])
def test_one_document_with_much_of_the_rows_is_not_taken_for_sure(giant):
    # a mean of 40 documents that differ, one of which has this share of all rows
    rng = np.random.default_rng(12)
    sizes = np.r_[giant * 39 / (1 - giant), np.ones(39)]
    covered = 0
    for _ in range(400):
        view = grouped(rng.normal(size=40) * sizes, sizes, 40)
        low, high = interval(view, mean, mean(view))
        covered += low <= 0 <= high
    # a standard error of 1.1 points at 95 %; weighted down by its rows a giant left 88, 43 %
    assert covered / 400 > 0.92


@pytest.mark.parametrize("freedom", [3.0, 3.5, 4.2, 5.9, 6.0, 7.3, 30.5])
def test_degrees_of_freedom_need_not_be_whole(freedom):
    # between whole degrees below six it is interpolated
    assert quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=4e-3)


@pytest.mark.parametrize("freedom", [7.0, 21.46, 30.0])
@pytest.mark.parametrize("near", [0.0, 1.9, 2.05, 2.6, 3.5, 9.0, np.inf])
def test_what_cannot_be_missed_on_one_side_is_left_out_on_the_other(near, freedom):
    usual, far = stats.t.ppf(0.975, freedom), far_quantile(near, freedom)
    if near <= usual:
        assert far == quantile(freedom)
    else:
        left_out = stats.t.sf(near, freedom) + stats.t.sf(far, freedom)
        assert left_out == pytest.approx(0.05, abs=2e-5)


def test_an_end_does_not_jump_where_the_other_begins_to_be_extended():
    # below six degrees both are interpolated between whole ones, each in its own way
    for freedom, off in ((3.4, 3e-3), (8.0, 1e-4), (29.3, 1e-5)):
        usual = quantile(freedom)
        assert far_quantile(usual + 1e-9, freedom) == pytest.approx(usual, rel=off)


def test_degrees_of_freedom_are_those_of_the_parts_that_count():
    few = np.r_[np.full(4, 5.0), np.full(28, 1e-3)]
    assert effective_freedom(np.ones(32)) == 31
    assert effective_freedom(np.ones(32), lost=2) == 30
    assert effective_freedom(few) == pytest.approx(12, rel=1e-3)  # three times 4
    assert effective_freedom(np.eye(32)[0]) == 3
    assert effective_freedom(np.zeros(32)) == 31


def test_in_the_logarithm_it_stays_positive():
    values = np.random.default_rng(2).lognormal(sigma=2.0, size=12)
    plain = interval(seen(values), mean, values.mean(), logarithmic=False)
    positive = interval(seen(values), mean, values.mean(), logarithmic=True)
    assert plain[0] < 0 < positive[0] < values.mean() < positive[1]


def test_a_value_without_a_logarithm_has_a_plain_interval():
    values = np.random.default_rng(3).normal(size=12) - 1
    plain = interval(seen(values), mean, values.mean(), logarithmic=False)
    assert interval(seen(values), mean, values.mean(), logarithmic=True) == plain


def test_a_reach_that_no_number_can_hold_falls_back_to_a_plain_interval():
    values = np.full(12, 1e-300)
    values[3] = 1.0
    low, high = interval(seen(values), mean, values.mean(), logarithmic=True)
    assert np.isfinite([low, high]).all()
    assert low < values.mean() < high


@pytest.mark.parametrize("documents", [1, LEAST_DOCUMENTS - 1])
def test_few_documents_have_none(documents):
    values = np.random.default_rng(4).normal(size=20)
    assert interval(seen(values, documents), mean, 0.0, logarithmic=False) is None


def test_few_groups_have_none_though_there_are_documents():
    values = np.random.default_rng(5).normal(size=LEAST_DOCUMENTS - 1)
    assert interval(seen(values, 100), mean, 0.0, logarithmic=False) is None


@pytest.mark.parametrize("problem", [TooFewRowsError, UndefinedError])
def test_what_is_undefined_without_some_group_has_none(problem):
    def fragile(view):
        if view.groups < 10:
            raise problem("too little is left", hint="give more", slug="too-few-rows")
        return 1.0

    assert interval(seen(np.ones(10)), fragile, 1.0, logarithmic=False) is None


def test_a_spread_is_what_the_interval_is_made_of(viewed):
    rows = np.random.default_rng(4).normal(size=(300, 6)) + 0.5
    names = np.repeat(np.arange(50), 6).astype(str)
    view = viewed(Units, rows, names)
    value = mean_cosine(view)
    found = spread(view, mean_cosine, value)
    low, high = interval(view, mean_cosine, value, logarithmic=False)
    assert quantile(found.freedom) * found.error == pytest.approx((high - low) / 2)
    assert len(found.keys) == len(found.parts) == view.groups
    assert found.parts.sum() == pytest.approx(0, abs=1e-12)


def test_where_there_is_no_interval_there_is_no_spread(viewed):
    rows = np.random.default_rng(4).normal(size=(20, 6))
    view = viewed(Units, rows, np.repeat(np.arange(5), 4).astype(str))
    assert spread(view, mean_cosine, mean_cosine(view)) is None
