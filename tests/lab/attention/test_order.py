"""What comes first in the heads of a series, drift or sharpness."""

import pytest

from isoscope.lab.attention.order import find_orders, half_way
from isoscope.types import Reading

STEPS = (0, 10, 20, 30)


def curve(site, measure, values, group="", half=0.01):
    return [
        Reading("a", site, "all", group, step, measure, v, v - half, v + half, 9, 4)
        for step, v in zip(STEPS, values, strict=True)
    ]


@pytest.mark.parametrize(
    ("drift", "entropy", "comes"),
    [
        ((0, 3, 4, 4), (1, 1, 0.9, 0.5), "before"),
        ((0, -3, -4, -4), (1, 1, 0.9, 0.5), "before"),  # opposed means drift as well
        ((0, 0, 1, 4), (1, 0.5, 0.5, 0.4), "after"),
        ((0, 0, 3, 4), (1, 1, 0.4, 0.4), "together"),
    ],
)
def test_the_half_way_steps_of_a_head_are_compared(drift, entropy, comes):
    readings = [
        *curve("head.0.0", "query-key-dot", drift),
        *curve("head.0.0", "attention-entropy", entropy),
    ]
    (found,) = find_orders(readings).heads
    assert found.drift_comes == comes


def test_heads_that_do_not_change_surely_are_counted_apart():
    readings = [
        *curve("head.0.0", "query-key-dot", (0, 3, 4, 4)),
        *curve("head.0.0", "attention-entropy", (1, 1, 1, 0.99), half=0.02),
        *curve("head.0.1", "query-key-dot", (0, 3, 4, 4)),
        *curve("head.0.1", "attention-entropy", (1, 1, 0.9, 0.2)),
    ]
    found = find_orders(readings)
    assert [each.site for each in found.heads] == ["head.0.1"]
    assert found.others == 1
    assert "half-way before the other in 1, after it in 0" in found.sentence
    assert "1 more do not change surely" in found.sentence


def test_means_are_read_before_rotation_where_there_is_one():
    readings = [
        *curve("head.0.0", "query-key-dot", (0, 0, 0, 4)),
        *curve("head.0.0", "query-key-dot", (0, 4, 4, 4), group="before-rotation"),
        *curve("head.0.0", "attention-entropy", (1, 1, 0.1, 0.1)),
    ]
    (found,) = find_orders(readings).heads
    assert (found.drift, found.sharpness) == (10, 20)


def test_half_way_is_reached_also_where_the_curve_overshoots():
    assert half_way([0, 1, 2], [0.0, 5.0, 1.0]) == 1
    assert find_orders([]).sentence == ""
