"""Planted worlds of the simulation are what they say, and their results what is written."""

import json
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).parents[2] / "bench" / "results" / "explain.json"


@pytest.fixture
def worlds(script):
    return script("worlds")


@pytest.mark.parametrize("topics", [0.0, 0.1])
@pytest.mark.parametrize(
    "causes",
    [("frequency:step", "position:slow", "mean"), ("sinks", "frequency:gradual", "dimensions")],
    ids="-".join,
)
def test_the_truth_is_what_very_many_rows_would_read(worlds, script, causes, topics):
    """The population's sums over cells, against the planted means of the rows of a draw."""
    script("other_worlds")
    explain = script("explain")
    told = explain.own(worlds.Plan(causes, 32, 3000, topics), 9)["told"]
    assert {"mean", "frequency alone", "position last", "dimensions"} <= set(told)
    for name, (truth, value, *_) in told.items():
        assert value == pytest.approx(truth, abs=0.02), name


def test_a_cause_that_is_not_planted_has_nothing(worlds):
    world = worlds.planted(worlds.Plan(("mean", "position:fast"), 64, 50), 2)
    truth = world.population.truth([0, 1])
    for name in ("sinks", "frequency", "frequency alone", "frequency last"):
        assert truth[name] == pytest.approx(0, abs=1e-12)
    assert truth["position"] > 0
    for name in ("position first", "position last"):
        assert truth[name] == pytest.approx(truth["position"], abs=1e-12)
    assert truth["mean"] + truth["position"] == pytest.approx(1)


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
    assert first.population.truth([0]) == second.population.truth([0])
    np.testing.assert_array_equal(first.cloud.units, second.cloud.units)


@pytest.fixture
def explain(script):
    script("worlds")
    script("other_worlds")
    return script("explain")


def test_what_is_written_can_be_read_again(explain):
    for kind, what in (("mixture", 2), ("other", "eight-dimensions")):
        cell = {"kind": kind, "what": what, "d": 32, "documents": 50}
        found = explain.rounded(explain.explained(cell, 6))
        assert json.loads(explain.written([cell | {"worlds": [found]}]))[0]["worlds"] == [found]
        for _, value, low, high in found["told"].values():
            assert low <= value <= high


def test_every_world_was_run(explain):
    cells = json.loads(RESULTS.read_text())
    keys = ("kind", "what", "d", "documents")
    assert [{key: each[key] for key in keys} for each in cells] == explain.cells()
    assert all(len(each["worlds"]) == explain.WORLDS[each["kind"]] for each in cells)


def covered(cells, of):
    """Whether each interval of some shares holds the truth, where there is any doubt."""
    return [
        low - 2e-5 <= truth <= high + 2e-5
        for each in cells
        for world in each["worlds"]
        for name, (truth, _, low, high) in (world["told"] or {}).items()
        if of(name) and low < high
    ]


def test_worlds_written_by_others_read_their_population_values():
    """Shares within 5 points on average in every world, and intervals that cover them."""
    cells = [each for each in json.loads(RESULTS.read_text()) if each["kind"] == "other"]
    for cell in cells:
        told = [world["told"] for world in cell["worlds"]]
        assert all(told), cell["what"]
        for name in set().union(*told):
            pairs = [each[name][:2] for each in told if name in each]
            truth, value = np.mean(pairs, axis=0)
            if not name.startswith("band"):
                assert value == pytest.approx(truth, abs=0.05), (cell["what"], name)
    for name in {each["what"] for each in cells}:
        here = [each for each in cells if each["what"] == name]
        assert np.mean(covered(here, lambda share: not share.startswith("band"))) >= 0.9, name


def test_intervals_of_every_share_cover():
    cells = json.loads(RESULTS.read_text())
    for name in ("sinks", "dimensions", "frequency", "position", "mean", "frequency last"):
        assert np.mean(covered(cells, lambda share, name=name: share == name)) >= 0.9, name
