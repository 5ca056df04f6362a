"""The two least alike bands, in tables of products written by hand."""

import numpy as np
import pytest

from isoscope.causes.band_pairs import Scale, least_alike, mean_pair, shortest

FIRST, SECOND = slice(1, 4), slice(4, 6)
EVEN = Scale(np.arange(3.0), 0.0, 2.0)  # the edges are the middles: nothing to go on to


def products(mean, *bands):
    """Products of a mean and of bands less the mean, all given as vectors."""
    lines = np.array([mean, *bands], dtype=float)
    return lines @ lines.T


def test_before_bands_are_distinguished_there_is_the_mean():
    assert mean_pair(products([3.0, 4.0], [1.0, 0.0])).product == 25


def test_two_bands_that_share_only_the_mean_are_least_alike():
    table = products([2.0, 0.0, 0.0], [0, 1, 0], [0, -1, 0], [0, 0, 0])
    found = least_alike(table, mean_pair(table), FIRST, EVEN)
    assert found.product == pytest.approx(4 - 1)
    assert {tuple(found.left), tuple(found.right)} == {(1, 1, 0, 0), (1, 0, 1, 0)}


def test_an_effect_that_a_band_is_without_leaves_the_mean_of_that_band():
    # along the second axis the bands have 0, 1 and 2: on average 1
    table = products([2.0, 1.0], [0, -1], [0, 0], [0, 1])
    assert least_alike(table, mean_pair(table), FIRST, EVEN).product == pytest.approx(4)


def test_a_line_is_followed_to_the_edge():
    # along the second axis 3, 2 and 1, and nothing at the outer edge, a band further on
    table = products([2.0, 2.0], [0, 1], [0, 0], [0, -1])
    edge = Scale(np.arange(3.0), 0.0, 3.0)
    assert least_alike(table, mean_pair(table), FIRST, edge).product == pytest.approx(4)
    half = Scale(np.arange(3.0), 0.0, 2.5)
    assert least_alike(table, mean_pair(table), FIRST, half).product == pytest.approx(4 + 0.25)


def test_a_line_is_not_followed_through_zero():
    table = products([2.0, 2.0], [0, 1], [0, 0], [0, -2])  # 3, 2 and 0
    edge = Scale(np.arange(3.0), 0.0, 3.0)
    assert least_alike(table, mean_pair(table), FIRST, edge).product == pytest.approx(4)


def test_a_second_kind_of_band_is_added_to_the_first():
    lines = [2.0, 1.0, 1.0], [0, -1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]
    table = products(*lines)
    before = least_alike(table, mean_pair(table), FIRST, EVEN)
    assert before.product == pytest.approx(5)
    after = least_alike(table, before, SECOND, Scale(np.arange(2.0), 0.0, 1.0))
    assert after.product == pytest.approx(4)


def test_a_single_band_changes_nothing():
    table = products([2.0, 1.0], [0.0, 0.0])
    found = least_alike(table, mean_pair(table), slice(1, 2), Scale(np.zeros(1), -0.5, 0.5))
    assert found.product == pytest.approx(5)


def test_the_shortest_is_a_band_with_itself():
    table = products([2.0, 0.0, 0.0], [0, 1, 0], [0, -1, 0], [0, 0.5, 0])
    found = shortest(table, mean_pair(table), FIRST, EVEN)
    assert found.product == pytest.approx(4.25)
    np.testing.assert_array_equal(found.left, found.right)
    np.testing.assert_array_equal(found.left, [1, 0, 0, 1])
