"""Planted worlds of the simulation are what they say, and their results what is written."""

import json
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).parents[2] / "bench" / "results" / "explain.json"


@pytest.fixture
def worlds(script):
    return script("worlds")


@pytest.mark.parametrize("cause", ["sinks", "dimensions", "frequency:step", "position:slow"])
def test_a_single_cause_is_all_of_the_truth(worlds, cause):
    world = worlds.planted(worlds.Plan((cause,), 32, 50), 1)
    assert world.truth[cause.partition(":")[0]] == 1
    assert sum(world.truth.values()) == pytest.approx(1)


def test_the_mean_cosine_is_the_one_that_was_planted(worlds):
    plan = worlds.Plan(("mean", "dimensions", "position:fast"), 64, 300)
    world = worlds.planted(plan, 2)
    assert world.cloud.total().mean_cosine == pytest.approx(world.strength, rel=0.1)


def test_sinks_are_found_by_their_norms_one_a_document(worlds):
    world = worlds.planted(worlds.Plan(("sinks", "mean"), 32, 80), 3)
    assert world.cloud.sink_rows.sum() == 80


def test_directions_of_causes_are_at_right_angles(worlds):
    directions, rogue = worlds.axes(32, np.random.default_rng(4))
    table = np.array(list(directions.values()))
    np.testing.assert_allclose(table @ table.T, np.eye(5), atol=1e-12)
    assert set(np.flatnonzero(np.abs(directions["dimensions"]) > 1e-12)) == set(rogue)


def test_the_same_seed_plants_the_same_world(worlds):
    plan = worlds.mixed(3, 32, 50, seed=5)
    first, second = worlds.planted(plan, 5), worlds.planted(plan, 5)
    assert plan == worlds.mixed(3, 32, 50, seed=5)
    assert first.truth == second.truth
    np.testing.assert_array_equal(first.cloud.units, second.cloud.units)


def test_what_is_written_can_be_read_again(script):
    script("worlds")
    explain = script("explain")
    cell = {"kind": "mixture", "what": 2, "d": 32, "documents": 50}
    found = explain.rounded(explain.explained(explain.plan(cell, 6), 6))
    assert json.loads(explain.written([cell | {"worlds": [found]}]))[0]["worlds"] == [found]
    for truth, value, low, high in found["told"].values():
        assert 0 <= truth <= 1 and low <= value <= high


def test_every_world_was_run(script):
    script("worlds")
    explain = script("explain")
    cells = json.loads(RESULTS.read_text())
    keys = ("kind", "what", "d", "documents")
    assert [{key: each[key] for key in keys} for each in cells] == explain.cells()
    assert all(len(each["worlds"]) == explain.WORLDS[each["kind"]] for each in cells)
