"""Causes say in words what was found, and name what can be named."""

import json
from dataclasses import replace

import pytest

from isoscope.accumulate.sinks import Sink
from isoscope.causes import attribute
from isoscope.causes.cause import NO_MEAN, NO_REST, causes


@pytest.fixture(scope="module")
def found(plant):
    world = plant(
        {"sinks": 1.0, "mean": 0.5, "dimensions": 0.5}, strength=0.02, documents=900, length=8
    )
    return attribute(world.cloud(), world.sample())


def told(found, sinks=()):
    lines = causes(found, sinks, run="r", site="resid.1", variant="all")
    return {each.cause: each for each in lines}


def test_dimensions_are_named(found):
    cause = told(found)["dimensions"]
    assert {each["dimension"] for each in cause.named} == {3, 17}
    assert "17 (" in cause.detail and "%" in cause.detail


def test_sinks_are_named_with_their_contexts(found):
    sinks = [Sink(99.0 - n, 0, 1, "<s>", f"<s> text {n}") for n in range(4)]
    sinks.append(Sink(20.0, 7, 5, ".", "end. Next"))
    cause = told(found, sinks)["sinks"]
    assert cause.detail == f"900 of {found.rows} rows: '<s>' at position 0, '.' at position 7"
    assert cause.named[4]["context"] == "end. Next"


def test_sinks_without_words_are_named_by_position(found):
    cause = told(found, [Sink(99.0, 0, None, "", "")])["sinks"]
    assert cause.detail.endswith("rows: position 0")


def test_bands_are_named_with_their_rows_and_contributions(found):
    cause = told(found)["frequency"]
    assert sum(each["rows"] for each in cause.named) == pytest.approx(1)
    assert sum(each["contribution"] for each in cause.named) == pytest.approx(1)
    assert cause.named[-1]["band"] == "frequency above 1e-2"
    assert "% of the rows" in cause.detail and "% of the mean cosine" in cause.detail


def test_each_cause_says_which_scale_it_is_on_and_what_its_share_is_of(found):
    lines = told(found)
    assert {name: each.scale for name, each in lines.items()} == {
        "sinks": "removal",
        "dimensions": "removal",
        "frequency": "dependence",
        "position": "dependence",
        "mean": "dependence",
    }
    assert lines["sinks"].whole == found.mean_cosine.value
    assert lines["dimensions"].whole == found.without_sinks.value
    assert lines["mean"].whole == lines["position"].whole == found.dependences.whole.value
    by_dependence = [each.share for each in lines.values() if each.scale == "dependence"]
    assert sum(by_dependence) == pytest.approx(1)


def test_first_last_alone_and_what_the_cosine_falls_to_stand_beside(found):
    lines = told(found)
    frequency = found.dependences.causes["frequency"]
    assert lines["frequency"].first == frequency.first.value
    assert lines["frequency"].last_high == frequency.last.high
    assert lines["frequency"].alone == frequency.alone.value
    before, after = found.zeroed
    assert (lines["dimensions"].falls_to, lines["dimensions"].falls_to_low) == (
        after.value,
        after.low,
    )
    assert f"from {before.value:.3f} to {after.value:.3f}" in lines["dimensions"].detail
    assert lines["mean"].first is None


def test_a_limited_number_of_dimensions_is_said_to_be(found):
    rogue = replace(found.dimensions, stood_out=70, named={n: 0.1 for n in range(6)})
    detail = told(replace(found, dimensions=rogue))["dimensions"].detail
    assert detail.startswith("0 (10%), 1 (10%), 2 (10%) and 3 more; limited to 6 of 70 that")


def test_what_is_undefined_is_missing_and_it_says_why(found):
    lines = told(replace(found, dependences=None))
    assert set(lines) == {"sinks", "dimensions"} and lines["sinks"].warnings == (NO_REST,)
    lines = told(replace(found, sinks=None, dimensions=None))
    assert set(lines) == {"frequency", "position", "mean"}
    assert lines["mean"].warnings == (NO_MEAN,)


def test_rounding_below_zero_is_nothing(found):
    rogue = replace(found.dimensions, named={3: 0.5, 8: -0.001})
    detail = told(replace(found, dimensions=rogue))["dimensions"].detail
    assert detail.startswith("3 (50%), 8 (0%)")


def test_a_cause_is_plain_json(found):
    line = json.loads(json.dumps(told(found)["dimensions"].to_dict()))
    assert list(line)[:12] == [
        "run", "site", "variant", "cause", "scale", "share", "low", "high", "whole",
        "mean_cosine", "n", "d",
    ]  # fmt: skip


def test_none_is_reported_where_there_is_none(plant):
    lines = told(attribute(plant({"mean": 1.0}, documents=100).cloud()))
    assert lines["sinks"].detail == "there are none"
    assert lines["dimensions"].detail == "none stands out"


def test_a_single_band_is_reported_as_one(found):
    one = replace(
        found.dependences.causes["position"],
        bands=found.dependences.causes["position"].bands[:1],
    )
    dependences = replace(found.dependences, causes={"position": one})
    line = told(replace(found, dependences=dependences))["position"]
    assert line.detail == "all rows are in one band" and line.named == ()
