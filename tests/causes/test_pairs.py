"""Products over pairs of rows of different groups, against going through the pairs."""

import numpy as np
import pytest

from isoscope.causes.pairs import (
    GroupSizes,
    Share,
    join_cells,
    mean_cosine,
    pair_products,
    row_pairs,
    totals,
    within_cells,
)
from isoscope.measures.interval import quantile, standard_error


def by_hand(left, right, groups):
    return sum(left[g] @ right[h] for g in groups for h in groups if g != h)


def test_products_are_those_of_different_groups_also_without_each():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 5, 3, 4))
    found = pair_products(left, right)
    assert found.shape == (6, 3)
    for without in range(-1, 5):
        groups = [g for g in range(5) if g != without]
        for k in range(3):
            expected = by_hand(left[:, k], right[:, k], groups)
            assert found[without + 1, k] == pytest.approx(expected)


def test_rows_are_counted_as_products_are_summed():
    rows = np.array([[2.0, 0.0], [3.0, 1.0], [1.0, 4.0]])
    assert row_pairs(rows, rows)[0].tolist() == [2 * (6 + 2 + 3), 2 * 4]
    assert totals(rows).tolist() == [[6, 5], [4, 5], [3, 4], [5, 1]]


def test_partners_come_from_the_same_cell_and_another_group():
    rng = np.random.default_rng(1)
    n, groups, cells = 80, 4, 3
    rows = rng.normal(size=(n, 6)) + 1
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    group, cell = rng.integers(0, groups, n), rng.integers(0, cells, n)
    units, counts = np.zeros((groups, cells, 6)), np.zeros((groups, cells))
    np.add.at(units, (group, cell), rows)
    np.add.at(counts, (group, cell), 1)
    for without in range(-1, groups):
        kept = group != without
        cosines = rows[kept] @ rows[kept].T
        apart = group[kept][:, None] != group[kept]
        same = cell[kept][:, None] == cell[kept]
        expected = sum(
            (cell[kept] == c).mean() * cosines[apart & same & (cell[kept] == c)].mean()
            for c in range(cells)
        )
        assert within_cells(units, counts)[without + 1] == pytest.approx(expected)
        found = mean_cosine(units.sum(axis=1), counts.sum(axis=1))[without + 1]
        assert found == pytest.approx(cosines[apart].mean())


def test_a_cell_of_too_few_groups_is_joined_with_the_next_and_the_last_with_the_one_before():
    rows = np.array([[1, 0, 1, 0, 1], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0]])
    assert join_cells(rows, 1) == [[0], [2], [3], [4]]
    assert join_cells(rows, 2) == [[0, 2], [3, 4]]
    assert join_cells(rows, 3) == [[0, 2, 3, 4]]
    assert join_cells(rows[:1], 2) == [[0, 2, 4]]


def test_numbers_have_intervals_where_there_are_enough_documents():
    values = np.array([1.0, *np.linspace(0.9, 1.1, 10)])
    share = GroupSizes(np.ones(10), 10).share(values)
    assert share.low < 1 < share.high and share.is_positive
    assert GroupSizes(np.ones(10), 7).share(values) == Share(1.0)
    assert (
        GroupSizes(np.ones(10), 10).share(np.where(values > 1.05, np.nan, values)).low is None
    )
    assert not Share(1.0, -0.1, 2.1).is_positive


def test_few_groups_that_decide_a_share_leave_few_degrees_of_freedom():
    rng = np.random.default_rng(0)
    calm = GroupSizes(np.full(32, 10.0), 32)
    even = np.r_[0.5, 0.5 + 0.01 * rng.choice([-1.0, 1.0], 32)]
    one = np.r_[0.5, 0.5 + 0.001 * rng.normal(size=31), 0.6]
    reaches = []
    for values in (even, one):
        share = calm.share(values)
        error = standard_error(values[0], values[1:], calm.sizes)
        reaches.append((share.high - share.value) / error)
    assert reaches[0] == pytest.approx(quantile(31))
    assert reaches[1] > 1.3 * quantile(31)
