"""Comparisons with weight 0, and what counts as learnt."""

from types import SimpleNamespace

import numpy as np
import pytest

from isoscope.lab.sweep.results import differences, is_learnt


def test_differences_without_a_chance_are_not_corrected_for():
    found = differences({0.0: [1.0, 2.0], 1.0: [1.5, 2.5], 2.0: [1.1, 2.3]})
    assert found[1.0].p_holm is None
    assert found[2.0].p_holm == found[2.0].p


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
def test_a_task_is_learnt_where_it_beats_its_baseline(values, baseline, expected):
    lines = [
        SimpleNamespace(weight=1.0, values=[1.0, 1.0]),
        SimpleNamespace(weight=0.0, values=values),
    ]
    assert is_learnt(lines, baseline) is expected


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_what_was_not_learnt_passes_for_learnt_in_five_per_cent(seeds):
    rng = np.random.default_rng(seeds)
    runs = [[SimpleNamespace(weight=0.0, values=v)] for v in rng.normal(size=(2000, seeds))]
    wrong = np.mean([is_learnt(lines, 0.0) for lines in runs])
    assert wrong == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / 2000) ** 0.5)
