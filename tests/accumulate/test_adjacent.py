"""Neighbouring rows: their cosines against the definition, cuts, merging, chance."""

import numpy as np
import pytest

from isoscope.accumulate import Adjacent, ArrayBlock
from isoscope.accumulate.adjacent import FIRST
from isoscope.errors import TooFewRowsError

RNG = np.random.default_rng(3)


def fed(rows, cuts=(), start=0):
    """What is known of rows that come in blocks, which begin with a row each."""
    found = Adjacent(rows.shape[1])
    for part in np.split(np.arange(len(rows)), list(cuts)):
        found.update(ArrayBlock(rows[part], ordinals=(start + part).astype(np.uint64)))
    return found


def units(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_it_is_what_the_definition_says():
    rows = RNG.normal(size=(301, 7)) + 0.5
    seen = fed(rows).finalize()
    u = units(rows)
    near = [u[i] @ u[i + 1] for i in range(0, 300, 2)]
    all_pairs = (u[:300] @ u[:300].T)[~np.eye(300, dtype=bool)]
    assert seen.pairs == 150
    assert seen.near == pytest.approx(np.mean(near))
    assert seen.spread == pytest.approx(np.std(near))
    assert seen.far == pytest.approx(all_pairs.mean())
    assert seen.likeness == pytest.approx((seen.near - seen.far) / (1 - seen.far))
    assert seen.errors == pytest.approx((seen.near - seen.far) / (np.std(near) / 150**0.5))


def test_cuts_between_pairs_change_nothing_and_a_pair_that_is_cut_is_missing():
    rows = RNG.normal(size=(200, 5))
    whole, even, odd = fed(rows), fed(rows, [2, 60, 130]), fed(rows, [61])
    for name, array in whole.state().items():
        np.testing.assert_allclose(even.state()[name], array, rtol=1e-12)
    assert (whole.pairs, odd.pairs) == (100, 99)


def test_parts_add_up_in_any_order():
    rows = RNG.normal(size=(200, 5))
    whole = fed(rows)
    for order in ((0, 1), (1, 0)):
        parts = [fed(rows[:120]), fed(rows[120:], start=120)]
        one, other = (parts[i] for i in order)
        one.merge(other)
        for name, array in whole.state().items():
            np.testing.assert_allclose(one.state()[name], array, rtol=1e-12)


def test_rows_that_do_not_follow_one_another_are_no_neighbours():
    rows = RNG.normal(size=(8, 3))
    found = Adjacent(3)
    found.update(ArrayBlock(rows, ordinals=np.array([0, 2, 3, 5, 6, 7, 10, 12])))
    assert found.pairs == 2  # 2 with 3, and 6 with 7
    rows[1] = 0  # no direction
    found = Adjacent(3)
    found.update(ArrayBlock(rows, ordinals=np.array([0, 2, 3, 5, 6, 7, 10, 12])))
    assert found.pairs == 1


def test_of_many_pairs_a_share_is_looked_at():
    rows = RNG.normal(size=(40 * FIRST, 2)).astype(np.float32)
    seen = fed(rows).finalize()
    assert seen.pairs == pytest.approx(FIRST + 19 * FIRST / 32, rel=0.1)
    assert abs(seen.errors) < 5


def test_without_ordinals_nothing_is_known():
    found = Adjacent(3)
    found.update(ArrayBlock(RNG.normal(size=(50, 3))))
    assert found.pairs == 0
    with pytest.raises(TooFewRowsError):
        found.finalize()


def test_equal_rows_are_as_alike_as_random_ones():
    seen = fed(np.ones((20, 3))).finalize()
    assert (seen.likeness, seen.errors) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1))
