"""Documents and directions are left out together."""

import numpy as np
import pytest

from isoscope.measures.view import SentenceSums


def test_a_group_leaves_both_summaries(viewed):
    rng = np.random.default_rng(0)
    view = viewed(SentenceSums, rng.normal(size=(200, 4)), np.arange(200) // 4)
    left = view.without(2)
    assert left.groups == view.groups - 1
    assert left.units.count == view.units.count - view.units.sizes[2]
    assert view.documents == 50
    assert view.count == 200
    assert view.sizes.sum() == 50


def test_where_groups_do_not_match_the_directions_stay(viewed):
    rng = np.random.default_rng(1)
    names = np.r_[np.repeat(np.arange(6), 3), [6, 7]]  # two documents of one row
    view = viewed(SentenceSums, rng.normal(size=(20, 4)), names)
    assert view.groups == 6
    assert view.without(0).units.count == pytest.approx(20)
