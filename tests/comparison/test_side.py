"""One side of a comparison: readings, and the spreads behind them."""

import pytest

from isoscope.comparison.side import Side, gap_between, opened
from isoscope.measures.interval import quantile
from isoscope.store import load


def test_spreads_are_those_that_intervals_are_made_of(collections):
    side = Side.of(load(collections("a")), "all")
    told = 0
    for reading in side.readings.values():
        spread = side.spread(reading)
        half = (reading.high - reading.low) / 2
        if abs(reading.high + reading.low - 2 * reading.value) < 1e-9 * abs(reading.value):
            # symmetric: neither of a logarithm nor cut off at a bound
            assert quantile(spread.freedom) * spread.error == pytest.approx(half, rel=1e-6)
            told += 1
        else:
            # to first order; the logarithm bends it by less than a fifth here
            assert quantile(spread.freedom) * spread.error == pytest.approx(half, rel=0.2)
    assert told > 8


def test_a_companion_has_no_spread_and_is_taken_as_independent(collections):
    sides = [Side.of(load(collections(name, all=True)), "all", ["partition"]) for name in "ab"]
    keys = [("rows", None, name) for name in ("partition", "partition-log")]
    how = []
    for key in keys:
        a, b = (side.readings[key] for side in sides)
        how.append(gap_between(sides[0], a, sides[1], b, paired=True)[1])
    assert how == [True, False]


def test_what_the_run_cannot_tell_is_no_reading(collections):
    side = Side.of(load(collections("a")), "all", ["self-similarity"])
    assert side.readings == {} and side.sites == [] and side.measures == []


def test_readings_of_steps_have_no_spread(handmade):
    run = load(handmade("a", [("embed", "isoscore", 0.5, 0.4, 0.6)], step=7))
    side = Side.of(run, "all")
    assert side.spread(side.readings["embed", 7, "isoscore"]) is None


def test_a_run_is_taken_as_it_is_and_a_path_is_loaded(handmade):
    folder = handmade("a", [("embed", "isoscore", 0.5, 0.4, 0.6)])
    run = load(folder)
    assert opened(run) is run
    assert opened(folder).readings == run.readings
