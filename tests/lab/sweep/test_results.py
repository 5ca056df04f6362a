"""The summary of a sweep, from readings alone."""

import pytest

from isoscope.lab.sweep.results import LOSS, TASK, group_of, is_learnt, lines_of, over_layers
from isoscope.types import Reading


def reading(site, measure, value, group="", step=0):
    return Reading("r", site, "all", group, step, measure, value, None, None, 10, 4)


def readings(seeds=3, steps=(5, 10)):
    found = [reading("resid.0", "isoscore", 0.2), reading("resid.1", "isoscore", 0.4)]
    for weight in (-1.0, 0.0, 2.0):
        for seed in range(seeds):
            for step in steps:
                group = group_of(weight, seed)
                value = 0.8 + 0.01 * weight + 0.02 * seed + step / 1000
                value += 0.001 * weight * (seed - 1)  # no two seeds differ alike
                found += [
                    reading(TASK, "accuracy", value, group, step),
                    reading(TASK, LOSS, 0.5 - 0.1 * seed, group, step),
                    reading("resid.0", "isoscore", 0.3 + 0.01 * seed, group, step),
                    reading("resid.1", "isoscore", 0.5, group, step),
                ]
    return found


def test_each_weight_has_its_seeds_its_mean_and_its_difference():
    low, plain, high = lines_of(readings(), "accuracy")
    assert [line.weight for line in (low, plain, high)] == [-1.0, 0.0, 2.0]
    assert plain.values == pytest.approx([0.81, 0.83, 0.85]) and plain.difference is None
    assert plain.mean == pytest.approx(0.83) and plain.sd == pytest.approx(0.02)
    assert high.difference.value == pytest.approx(0.02)
    assert low.difference.value == pytest.approx(-0.01)
    assert plain.loss == pytest.approx(0.4)


def test_geometry_is_the_mean_over_seeds_beside_what_it_was():
    line = lines_of(readings(), "accuracy")[0]
    assert line.before["isoscore"] == {"resid.0": 0.2, "resid.1": 0.4}
    assert line.after["isoscore"]["resid.0"] == pytest.approx(0.31)
    assert over_layers(line.after, "isoscore") == pytest.approx(0.405)
    assert over_layers(line.after, "twonn") is None


def test_another_step_may_be_requested():
    assert lines_of(readings(), "accuracy", step=5)[1].mean == pytest.approx(0.825)


def test_seeds_that_not_every_weight_has_are_excluded():
    some = [r for r in readings() if r.group != group_of(2.0, 2)]
    assert [line.seeds for line in lines_of(some, "accuracy")] == [[0, 1]] * 3


def test_one_seed_has_neither_spread_nor_verdict():
    lines = lines_of(readings(seeds=1), "accuracy")
    assert lines[0].sd is None and lines[0].difference.low is None
    assert is_learnt(lines, 0.5) is None


def test_what_was_learnt_is_distinguished_from_weight_zero():
    lines = lines_of(readings(), "accuracy")
    assert is_learnt(lines, 0.5) is True
    assert is_learnt(lines, 0.82) is False
    assert is_learnt([], 0.5) is None


def test_a_line_is_plain_values():
    told = lines_of(readings(), "accuracy")[0].to_dict()
    assert told["difference"]["p_holm"] is not None
    assert told["after"]["isoscore"]["resid.1"] == pytest.approx(0.5)
