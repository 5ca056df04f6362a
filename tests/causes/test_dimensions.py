"""Rogue dimensions: found where planted, not found in a mean that points anywhere."""

import numpy as np
import pytest

from isoscope.causes.dimensions import MOST, mask_without, outliers, rogue, stands_out


def quiet(vector):
    return vector, np.zeros(len(vector))


@pytest.mark.parametrize("width", [32, 64, 384, 768])
def test_a_mean_that_points_anywhere_has_none(width):
    rng = np.random.default_rng(width)
    found = [outliers(*quiet(rng.normal(size=width))) for _ in range(600)]
    assert sum(map(bool, found)) <= 14  # one in a hundred is expected


def test_of_two_vectors_one_in_a_hundred_has_any():
    rng = np.random.default_rng(5)
    found = [rogue([quiet(rng.normal(size=96)) for _ in range(2)]) for _ in range(400)]
    assert sum(map(bool, found)) <= 10


@pytest.mark.parametrize("width", [64, 384])
def test_planted_ones_are_found_the_largest_first(width):
    mean = np.random.default_rng(0).normal(size=width)
    mean[[5, 9]] = 20, -30
    assert rogue([quiet(mean)]) == (9, 5)


def test_two_stand_out_together_where_one_alone_would_not():
    mean = np.random.default_rng(2).normal(size=96)
    mean[4] = 3.7
    assert outliers(*quiet(mean)) == []
    mean[8] = -3.7
    assert set(outliers(*quiet(mean))) == {4, 8}


def test_what_one_vector_hides_another_shows():
    rng = np.random.default_rng(8)
    mean, alone = rng.normal(size=64), rng.normal(size=64) / 10
    mean[7] = alone[7] = 2.0
    assert rogue([quiet(mean)]) == ()
    assert rogue([quiet(mean), quiet(alone)]) == (7,)


def test_a_dimension_that_is_large_because_it_varies_is_not_rogue():
    rng = np.random.default_rng(4)
    noise = np.full(128, 1.0)
    noise[11] = 100.0
    mean = rng.normal(size=128)
    mean[11] = 12.0
    assert outliers(mean, np.zeros(128)) == [11]
    assert outliers(mean, noise) == []


def test_there_are_never_more_than_a_handful():
    mean = np.random.default_rng(1).normal(size=384)
    mean[:12] = 50
    assert len(rogue([quiet(mean)])) <= MOST
    mean[:12] = np.arange(50, 170, 10)
    assert rogue([quiet(mean)]) == (11, 10, 9, 8, 7)


@pytest.mark.parametrize("width", [1, 2, 8])
def test_among_few_dimensions_none_stands_out(width):
    mean = np.ones(width)
    mean[0] = 1000.0
    assert rogue([quiet(mean)]) == ()


def test_a_vector_of_zeros_has_none():
    assert rogue([quiet(np.zeros(64))]) == ()


def test_more_together_need_to_stand_out_less():
    limits = [stands_out(count, 192) for count in range(1, MOST + 1)]
    assert limits == sorted(limits, reverse=True)
    assert 4.2 < limits[0] < 4.8 and 3.3 < limits[1] < 3.8


def test_more_dimensions_ask_for_more_and_few_of_them_too():
    assert stands_out(1, 384) < stands_out(1, 10_000)
    assert stands_out(2, 16) > stands_out(2, 64)


def test_the_mask_leaves_out_what_is_named():
    assert mask_without(4, (1, 3)).tolist() == [True, False, True, False]
