"""Comparisons: scipy's paired test, Holm by hand, and what counts as learnt."""

import numpy as np
import pytest
from scipy import stats

from isoscope.lab.sweep.compare import differences, holm, learnt, paired


def test_a_paired_difference_is_that_of_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 5))
    found = paired(a.tolist(), b.tolist())
    known = stats.ttest_rel(a, b)
    low, high = known.confidence_interval(0.95)
    assert found.value == pytest.approx((a - b).mean())
    assert found.p == pytest.approx(known.pvalue)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_one_seed_has_no_interval():
    found = paired([0.5], [0.25])
    assert (found.value, found.low, found.high, found.p) == (0.25, None, None, None)


@pytest.mark.parametrize(
    ("values", "plain"),
    [
        ([1.0, 2.0], [0.5, 1.5]),
        ([0.51, 0.61], [0.5, 0.6]),  # the same but for rounding
        ([1.0, 2.0], [1.0, 2.0]),
        ([0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_differences_that_are_all_the_same_have_no_interval(values, plain):
    found = paired(values, plain)
    assert found.value == pytest.approx(values[0] - plain[0])
    assert (found.low, found.high, found.p) == (None, None, None)


def test_differences_without_a_chance_are_not_corrected_for():
    found = differences({0.0: [1.0, 2.0], 1.0: [1.5, 2.5], 2.0: [1.1, 2.3]})
    assert found[1.0].p_holm is None
    assert found[2.0].p_holm == found[2.0].p


def test_holm_is_as_by_hand_and_never_above_one():
    assert holm([0.01, 0.02, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([None, 0.2]) == [None, 0.2]
    assert holm([]) == []


def test_each_weight_is_compared_with_none_and_corrected():
    values = {0.0: [1.0, 2.0, 3.0], -1.0: [1.1, 2.2, 3.3], 5.0: [1.0, 2.0, 3.5]}
    found = differences(values)
    assert set(found) == {-1.0, 5.0}
    assert found[-1.0].value == pytest.approx(0.2)
    smaller = min(found.values(), key=lambda each: each.p)
    assert smaller.p_holm == pytest.approx(min(1.0, 2 * smaller.p))


def test_false_positives_stay_within_their_share():
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        runs = {float(w): rng.normal(size=5).tolist() for w in range(7)}
        wrong += any(each.p_holm < 0.05 for each in differences(runs).values())
    # Six comparisons share one plain run; Holm keeps all of them together below 5 %.
    assert wrong / 400 < 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5


@pytest.mark.parametrize(
    ("values", "baseline", "expected"),
    [
        ([0.8, 0.82, 0.81], 0.5, True),
        ([0.51, 0.49, 0.5], 0.5, False),
        ([0.5, 0.5, 0.5], 0.5, False),
        ([0.1 + 0.2] * 3, 0.3, False),
        ([0.9, 0.1], 0.4, False),
        ([0.9], 0.4, None),
    ],
)
def test_a_task_is_learnt_where_it_beats_its_baseline_by_two_errors(values, baseline, expected):
    assert learnt(values, baseline) is expected
