"""Causes say in words what was found, and name what can be named."""

import json
from dataclasses import replace

import pytest

from isoscope.accumulate.sinks import Sink
from isoscope.causes import attribute
from isoscope.causes.cause import causes


@pytest.fixture(scope="module")
def found(plant):
    world = plant(
        {"sinks": 1.0, "mean": 0.5, "dimensions": 0.5}, strength=0.02, documents=900, length=8
    )
    return attribute(world.cloud())


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


def test_bands_are_named_with_their_rows_and_cosines(found):
    cause = told(found)["frequency"]
    assert sum(each["rows"] for each in cause.named) == pytest.approx(1)
    assert "among the rarest" in cause.detail


def test_a_cause_is_plain_json(found):
    line = json.loads(json.dumps(told(found)["dimensions"].to_dict()))
    assert list(line) == [
        "run", "site", "variant", "cause", "share", "low", "high", "mean_cosine", "n", "d",
        "detail", "named", "warnings",
    ]  # fmt: skip


def test_none_is_reported_where_there_is_none(plant):
    lines = told(attribute(plant({"mean": 1.0}, documents=100).cloud()))
    assert lines["sinks"].detail == "there are none"
    assert lines["dimensions"].detail == "none stands out"


def test_a_single_band_is_reported_as_one(found):
    alone = replace(found, position_bands=((1.0, 0.2),))
    assert told(alone)["position"].detail == "all rows are in one band"
    assert told(alone)["position"].named == ()
