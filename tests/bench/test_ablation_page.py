"""The page of ablations says what effects say, and the committed results are whole."""

import json
import re
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "bench" / "results"


@pytest.fixture
def module(script):
    return script("ablation_page")


def effect(value, p, marks=()):
    return {
        "value": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "p_corrected": p,
        "marks": list(marks),
    }


@pytest.mark.parametrize(
    ("value", "p", "verdict"),
    [
        (0.6, 0.01, "supported, the largest effect"),
        (0.3, 0.01, "supported, 50% of the largest effect"),
        (-0.3, 0.01, "the opposite, 50% of the largest effect"),
        (0.3, 0.2, "not supported"),
        (0.3, None, "not supported"),
    ],
)
def test_a_suspicion_is_supported_by_sign_and_corrected_chance(module, value, p, verdict):
    assert module.verdict(effect(value, p), 0.6) == verdict


def test_effects_are_bold_where_they_are_sure_and_starred_where_marked(module):
    assert module.shown(effect(0.3, 0.01)) == "**+0.300** [+0.200, +0.400]"
    assert module.shown(effect(-0.3, 0.2, ["untrained"])) == "-0.300 [-0.400, -0.200] \\*"


def test_experiments_that_were_not_run_say_so(module, monkeypatch):
    monkeypatch.setattr(module, "results", dict)
    assert all(make().startswith("Not run") for make in module.TABLES.values())


@pytest.fixture
def found():
    return json.loads((RESULTS / "ablation.json").read_text())


def test_the_preset_is_whole_and_permuted_labels_find_next_to_nothing(found):
    records = found["preset"]["records"]
    assert len({tuple(each["levels"]) for each in records}) == 16
    assert len(records) == 48 and {each["seed"] for each in records} == {0, 1, 2}
    counts = [each["inner_parameters"] for each in records]
    assert max(counts) <= 1.02 * min(counts)
    (remark,) = (each for each in found["preset"]["remarks"] if "permuted" in each)
    times, share = re.search(r"permuted (\d+) times, ([\d.]+)%", remark).groups()
    assert int(times) >= 200 and float(share) <= 5


def test_the_ladder_is_whole(found):
    records = found["ladder"]["records"]
    assert len({tuple(each["levels"]) for each in records}) == 4
    assert len(records) == 12 and {each["seed"] for each in records} == {0, 1, 2}


def test_the_default_training_ends_in_time_and_learns_as_much_as_was_promised():
    seen = json.loads((RESULTS / "nursery.json").read_text())
    assert seen["seconds"] <= 240
    assert seen["held_out_loss"] <= seen["unigram_entropy"] - 1
    assert 1e6 <= seen["parameters"] <= 3e6
    assert max(seen["cells"].values()) <= 60
    assert seen["ratio"] <= 1.2
