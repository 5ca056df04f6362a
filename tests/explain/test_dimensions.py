"""Rogue dimensions: found where planted, not found in a mean that points anywhere."""

import numpy as np
import pytest

from isoscope.explain.cloud import Totals
from isoscope.explain.dimensions import MOST, kept, rogue, stands_out


def pulled(unit):
    sums = np.array([unit, unit])
    return Totals(sums, np.array([[1000.0]]), np.ones(len(unit)), np.zeros(len(unit)), 0.0)


@pytest.mark.parametrize("width", [64, 384, 768])
def test_a_mean_that_points_anywhere_has_none(width):
    rng = np.random.default_rng(width)
    found = [rogue(pulled(rng.normal(size=width))) for _ in range(300)]
    assert sum(map(bool, found)) <= 9  # one in a hundred is expected


@pytest.mark.parametrize("width", [64, 384])
def test_planted_ones_are_found_the_largest_first(width):
    mean = np.random.default_rng(0).normal(size=width)
    mean[[5, 9]] = 20, -30
    assert rogue(pulled(mean)) == (9, 5)


def test_there_are_never_more_than_a_handful():
    mean = np.random.default_rng(1).normal(size=384)
    mean[:12] = 50
    assert len(rogue(pulled(mean))) == MOST


@pytest.mark.parametrize("width", [1, 2, 8])
def test_among_few_dimensions_none_stands_out(width):
    mean = np.ones(width)
    mean[0] = 1000.0
    assert rogue(pulled(mean)) == ()


def test_two_that_are_alike_do_not_hide_each_other():
    mean = np.random.default_rng(2).normal(size=96)
    mean[[4, 8]] = 5.5
    assert set(rogue(pulled(mean))) == {4, 8}


def test_more_dimensions_ask_for_more_and_few_of_them_too():
    assert 3.9 < stands_out(64) < stands_out(8)
    assert stands_out(384) < stands_out(10_000) < 5.1


def test_the_mask_leaves_out_what_is_named():
    assert kept(4, (1, 3)).tolist() == [True, False, True, False]
