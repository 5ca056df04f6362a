"""What is left of the mean cosine when sinks keep only what the other rows have."""

import numpy as np
import pytest

from isoscope.causes.attribution import weight_without
from isoscope.causes.cloud import Totals


def totals(other, sink, *, rows=900.0, sinks=100.0):
    units = np.array([other, other]) * rows
    energy = np.full(len(other), rows / len(other))
    return Totals(units, np.array([[rows]]), energy, np.array(sink) * sinks, sinks)


def test_without_sinks_all_is_left():
    assert weight_without(totals([0.5, 0.0], [0.0, 0.0], sinks=0.0)) == 1


def test_sinks_across_all_others_leave_the_others_part():
    assert weight_without(totals([0.5, 0.0], [0.0, 1.0])) == pytest.approx(0.81)


def test_sinks_along_with_the_others_leave_everything():
    assert weight_without(totals([0.5, 0.0], [1.0, 0.0])) == pytest.approx(1)


def test_sinks_against_the_others_keep_nothing():
    assert weight_without(totals([0.5, 0.0], [-1.0, 0.0])) == pytest.approx(0.81)


def test_sinks_that_follow_half_way_keep_half():
    assert weight_without(totals([0.5, 0.0], [0.25, 0.9])) == pytest.approx(
        (0.9 + 0.1 * 0.5) ** 2, rel=1e-2
    )


def test_where_others_have_no_direction_sinks_share_none():
    assert weight_without(totals([0.0, 0.0], [1.0, 0.0])) == pytest.approx(0.81)
