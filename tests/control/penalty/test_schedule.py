"""Weights over the steps of training."""

import pickle

import pytest

from isoscope.control import IStar, Schedule, cosine, linear
from isoscope.control.penalty.penalty import check_weight
from isoscope.errors import ConfigError


def test_without_more_it_is_the_weight():
    assert [Schedule(-3.0).at(call) for call in (0, 7, 10**6)] == [-3.0] * 3


def test_warm_up_rises_in_a_straight_line_and_begins_above_zero():
    schedule = Schedule(2.0, warmup=4)
    assert [schedule.at(call) for call in range(6)] == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]


def test_calls_of_one_optimiser_step_have_one_weight():
    schedule = Schedule(2.0, warmup=2, accumulate=3)
    assert [schedule.at(call) for call in range(7)] == [1.0] * 3 + [2.0] * 4


def test_the_weight_falls_along_a_line_or_a_cosine():
    assert [Schedule(1.0, factor=linear(4)).at(i) for i in (0, 2, 4, 9)] == [1, 0.5, 0, 0]
    falling = [Schedule(1.0, factor=cosine(4)).at(i) for i in (0, 1, 2, 4, 9)]
    assert falling == pytest.approx([1, 0.853553, 0.5, 0, 0], abs=1e-6)


def test_any_function_of_the_step_will_do():
    assert Schedule(3.0, factor=lambda step: -step).at(2) == -6.0


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -float("inf")])
def test_a_weight_that_is_no_number_is_refused(weight):
    with pytest.raises(ConfigError, match="expected a finite number as the weight"):
        check_weight(weight)
    with pytest.raises(ConfigError, match="expected a finite number as the weight"):
        IStar(weight)
    with pytest.raises(ConfigError, match="expected a finite number as the weight"):
        Schedule(1.0, factor=lambda _step: weight).at(0)


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"warmup": -1}, "expected a whole number of 0 or more as warmup, got -1"),
        ({"warmup": 0.5}, "as warmup, got 0.5"),
        ({"accumulate": 0}, "expected a whole number of 1 or more as accumulate, got 0"),
    ],
)
def test_steps_are_whole_numbers(how, match):
    with pytest.raises(ConfigError, match=match):
        Schedule(1.0, **how)


@pytest.mark.parametrize("made", [linear, cosine])
@pytest.mark.parametrize("steps", [0, -3, 1.5])
def test_a_weight_falls_over_one_step_or_more(made, steps):
    with pytest.raises(ConfigError, match="1 or more as steps of a schedule") as caught:
        made(steps)
    assert caught.value.slug == "penalty-steps"


@pytest.mark.parametrize("made", [linear, cosine])
def test_a_penalty_with_a_schedule_can_be_pickled(made):
    again = pickle.loads(pickle.dumps(IStar(2.0, schedule=made(4))))
    assert again.schedule == IStar(2.0, schedule=made(4)).schedule
    assert again.schedule.at(4) == 0


@pytest.mark.parametrize("weight", ["1", None])
def test_a_weight_is_a_number(weight):
    with pytest.raises(ConfigError, match="expected a finite number as the weight"):
        IStar(weight)


def test_a_step_that_is_named_is_taken_and_calls_are_not_counted():
    penalty = IStar(1.0, warmup=4, accumulate=3)
    assert penalty.weight == 0.25
    penalty.step = 2
    assert penalty.weight == 0.75
