"""Student's t and paired differences against SciPy, Holm by hand."""

import numpy as np
import pytest
from scipy import stats

from isoscope.measures.difference import Difference, holm, paired_difference
from isoscope.measures.interval import exact_quantile, quantile, two_sided


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 7, 8, 9, 10, 30, 31, 49, 62])
@pytest.mark.parametrize("t", [0.0, 0.1, 0.3, 1.0, 2.04, 2.5, 3.7, 8.0, 12.0])
def test_the_chance_is_that_of_students_t(freedom, t):
    known = 2 * stats.t.sf(t, freedom)
    assert two_sided(t, freedom) == pytest.approx(known, rel=1e-9, abs=1e-14)
    assert two_sided(-t, freedom) == two_sided(t, freedom)


def test_infinity_has_no_chance():
    assert two_sided(float("inf"), 4) == two_sided(float("-inf"), 4) == 0.0


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 30])
def test_the_exact_quantile_is_that_of_scipy(freedom):
    assert exact_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    assert exact_quantile(freedom, 0.01) == pytest.approx(stats.t.ppf(0.995, freedom), rel=1e-9)


@pytest.mark.parametrize("freedom", [6, 7, 8, 10, 14, 30, 31, 100, 10_000])
def test_the_quantile_of_intervals_is_near_that_of_student(freedom):
    exact = stats.t.ppf(0.975, freedom)
    assert quantile(freedom) == pytest.approx(exact, rel=2e-8 if freedom > 30 else 5e-5)


def test_an_interval_that_just_reaches_zero_has_a_chance_of_five_per_cent():
    assert two_sided(quantile(31), 31) == pytest.approx(0.05, abs=1e-4)
    assert two_sided(quantile(8), 8) == pytest.approx(0.05, abs=1e-3)
    assert two_sided(exact_quantile(3), 3) == pytest.approx(0.05, rel=1e-12)


def test_holm_is_what_he_wrote_down_and_never_above_one():
    # Holm (1979) by hand: 4 x .01, 3 x .015, 2 x .02 < .045, 1 x .5
    assert holm([0.5, 0.01, 0.02, 0.015]) == pytest.approx([0.5, 0.04, 0.045, 0.045])
    assert holm([0.01, 0.02, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([None, 0.2]) == [None, 0.2]
    assert holm([]) == []


def test_a_paired_difference_is_that_of_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 5))
    found = paired_difference(a.tolist(), b.tolist())
    known = stats.ttest_rel(a, b)
    low, high = known.confidence_interval(0.95)
    assert found.value == pytest.approx((a - b).mean())
    assert found.p == pytest.approx(known.pvalue)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_one_pair_has_no_interval():
    assert paired_difference([0.5], [0.25]) == Difference(0.25, None, None, None)


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ([1.0, 2.0], [0.5, 1.5]),
        ([0.51, 0.61], [0.5, 0.6]),  # the same but for rounding
        ([1.0, 2.0], [1.0, 2.0]),
        ([0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_differences_that_are_all_the_same_have_no_interval(values, others):
    found = paired_difference(values, others)
    assert found.value == pytest.approx(values[0] - others[0])
    assert (found.low, found.high, found.p) == (None, None, None)


def test_without_any_error_only_zero_is_chance():
    assert Difference.of(0.0, (0.0, 0.0), 0.0, 4).p == 1.0
    assert Difference.of(0.5, (0.0, 0.0), 0.0, 4).p == 0.0
    assert Difference.of(1.0, (0.25, 0.5), 0.2, 4).low == 0.75
