"""The simulation of the tests of curves: its worlds, its cells and its tables."""

import json

import numpy as np
import pytest


def test_worlds_have_no_jump_and_the_noise_they_name(script):
    module = script("changes")
    random = np.random.default_rng(0)
    for world in (*module.NAMED, *module.OTHERS, "pythia"):
        curves = module.curves_of(world, random, 3, 154)
        assert curves.shape == (3, 154) and np.isfinite(curves).all()
    (walk,) = module.curves_of("walk", random, 1, 20_000)
    assert np.diff(walk).std() == pytest.approx(1, abs=0.03)
    (noise,) = module.curves_of("ar-0.9", random, 1, 20_000)
    assert np.corrcoef(noise[1:], noise[:-1])[0, 1] == pytest.approx(0.9, abs=0.02)


def test_every_test_has_the_worlds_and_sizes_that_are_asked_for(script):
    module = script("changes")
    cells = list(module.cells())
    assert len(cells) == len(set(cells))
    for test, sizes in module.SIZES.items():
        for world in module.NAMED:
            assert {n for t, w, n, c in cells if (t, w, c) == (test, world, 0)} == set(sizes)


@pytest.mark.parametrize("test", ["onset", "lead", "together"])
def test_a_large_change_is_found_and_nothing_otherwise(script, test):
    module = script("changes")
    (n, change) = (12, 8) if test == "onset" else (30, 4)
    found = module.run(test, "walk", n, change, 40)["found"]
    none = module.run(test, "walk", n, 0, 40)
    assert found >= 30
    assert none.get("alarms", none["found"]) <= 8


def test_jumps_are_counted_with_their_places(script):
    found = script("changes").run("sudden", "walk", 12, 30, 3)
    assert found["found"] == found["near"] == found["held"] == 3


def test_a_share_is_marked_where_it_is_surely_not_nominal(script, monkeypatch, tmp_path):
    page = script("changes_page")
    cell = {"test": "lead", "world": "walk", "n": 30, "change": 0, "draws": 1000, "silent": 0}
    path = tmp_path / "changes.json"
    monkeypatch.setattr(page, "RESULTS", path)
    for hits, word in ((50, "5.0"), (90, "9.0 (above)"), (20, "2.0 (below)")):
        path.write_text(json.dumps([{**cell, "found": hits}]))
        page.found.cache_clear()
        assert f"| lead | 30 | – | – | {word} | – |" in page.false_alarms()
