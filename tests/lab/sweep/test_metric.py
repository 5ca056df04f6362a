"""Metrics against scikit-learn and scipy, and the hand-counted ones of SQuAD."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as oracle

from isoscope.lab.sweep.task import METRICS, exact, f1, matthews, pearson, span_f1, spearman

rng = np.random.default_rng(0)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_labels_are_those_of_scikit_learn(classes, seed):
    rng = np.random.default_rng(seed)
    right, said = rng.integers(classes, size=(2, 200))
    accuracy = METRICS["accuracy"].compute(said, right)
    assert accuracy == pytest.approx(oracle.accuracy_score(right, said))
    assert matthews(said, right) == pytest.approx(oracle.matthews_corrcoef(right, said))
    average = "binary" if classes == 2 else "macro"
    assert f1(said, right) == pytest.approx(oracle.f1_score(right, said, average=average))


def test_correlations_are_those_of_scipy_with_ties_too():
    right = rng.integers(6, size=300) / 2
    said = right + rng.normal(size=300)
    said[:40] = said[0]
    assert pearson(said, right) == pytest.approx(stats.pearsonr(said, right).statistic)
    assert spearman(said, right) == pytest.approx(stats.spearmanr(said, right).statistic)


def test_saying_always_the_same_has_no_correlation():
    right = np.array([0, 1, 1, 0, 1])
    assert matthews(np.ones(5, dtype=int), right) == 0.0
    assert pearson(np.full(5, 0.1), right) == spearman(np.full(5, 0.1), right) == 0.0


@pytest.mark.parametrize(
    "right", [[0] * 6 + [1] * 4, [1] * 6 + [0] * 4, [0] * 2 + [1] * 3 + [2] * 5, [2, 0, 2, 0]]
)
@pytest.mark.parametrize("name", ["accuracy", "f1"])
def test_no_constant_answer_beats_the_baseline(name, right):
    right = np.array(right)
    reached = [
        METRICS[name].compute(np.full(len(right), each), right)
        for each in range(right.max() + 1)
    ]
    assert METRICS[name].baseline(right) == max(reached)


def test_baselines_are_a_constant_answer_or_zero():
    right = np.array([0, 1, 1, 1])
    assert METRICS["accuracy"].baseline(right) == 0.75
    assert METRICS["f1"].baseline(right) == pytest.approx(6 / 7)
    assert METRICS["matthews"].baseline(right) == 0.0
    assert METRICS["spearman"].baseline(np.array([0.5, 1.0])) == 0.0
    assert METRICS["span-f1"].baseline(None) == 0.0


def test_answers_are_compared_as_squad_does():
    right = [["the old bridge", "bridge"], ["1945"]]
    assert exact(["The Bridge!", "1945."], right) == 1.0
    assert span_f1(["an old bridge", "in 1945"], right) == pytest.approx((1.0 + 2 / 3) / 2)
    assert span_f1(["", "nothing"], right) == 0.0
    assert span_f1(["the"], [["a"]]) == 1.0  # both are articles only
