"""Weights of two sets of rows, against the moments of all of them."""

import numpy as np
import pytest

from isoscope.accumulate.cellwise import pairwise_weights


@pytest.mark.parametrize("cut", [1, 7, 19])
def test_mean_and_scatter_are_those_of_all_rows(cut):
    rows = np.random.default_rng(0).normal(3.0, 0.5, size=(20, 4))
    a, b = rows[:cut], rows[cut:]
    share, weight = pairwise_weights(len(a), len(b))
    step = b.mean(axis=0) - a.mean(axis=0)
    scatter = sum((r - r.mean(axis=0)).T @ (r - r.mean(axis=0)) for r in (a, b))
    np.testing.assert_allclose(a.mean(axis=0) + share * step, rows.mean(axis=0))
    whole = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
    np.testing.assert_allclose(scatter + weight * np.outer(step, step), whole)


def test_groups_are_weighted_each_by_its_own_rows():
    share, weight = pairwise_weights(np.array([0.0, 3.0]), np.array([2.0, 1.0]))
    assert share.tolist() == [1.0, 0.25]
    assert weight.tolist() == [0.0, 0.75]
