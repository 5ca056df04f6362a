"""A sweep as curves: cells and weights are those of its readings, and damage is told."""

import json
import shutil

import pytest

import isoscope as iso
from isoscope.errors import IsoscopeError, StoreError
from isoscope.exhibit.exhibit import exhibits
from isoscope.lab.sweep.results import LAYERS, cell_of, grid_of, sweep_results
from isoscope.lab.sweep.section import BEFORE


@pytest.fixture(scope="module")
def run(tiny, reviews, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "stars"
    iso.sweep(
        tiny, reviews, output=place, label="stars", weights=[-3, 3], seeds=2, steps=4, every=2,
        length=32, probe=24, threads=1, learning_rate=5e-3,
    )  # fmt: skip
    return iso.load(place)


def test_weights_are_the_lines_of_the_sweep(run):
    grid = grid_of(run)
    lines = sweep_results(run.readings, run.origin)
    assert [each.weight for each in grid.weights] == [-3.0, 0.0, 3.0]
    assert [each.mean for each in grid.weights] == [line.mean for line in lines]
    assert grid.weights[1].value is None  # weight 0 does not differ from itself
    for place in (0, 2):
        apart, found = lines[place].difference, grid.weights[place]
        told = (found.value, found.low, found.high, found.p)
        assert told == (apart.value, apart.low, apart.high, apart.p_holm)
    assert grid.task == "reviews" and grid.penalty == "istar"
    assert grid.learnt is lines.shared["learnt"]


def test_cells_are_the_readings_after_the_last_step(run):
    cells = grid_of(run).cells
    # measures; sites and the mean over layers; before and cells
    assert len(cells) == 4 * (4 + 1) * (1 + 6)
    assert sum(each.seed is None for each in cells) == 4 * (4 + 1)
    found = {
        (each.measure, each.site, each.weight, each.seed): (each.geometry, each.metric)
        for each in cells
    }
    layers = [found["mean-cosine", f"resid.{n}", 3.0, 1][0] for n in range(3)]
    assert found["mean-cosine", LAYERS, 3.0, 1][0] == pytest.approx(sum(layers) / 3, rel=1e-12)
    for each in run.readings:
        cell = cell_of(each.group)
        if cell and each.step == 4 and (each.measure, each.site) == ("mean-cosine", "resid.1"):
            x, y = found["mean-cosine", "resid.1", *cell]
            assert x == each.value
            metric = next(
                r.value
                for r in run.readings
                if (r.group, r.step, r.measure) == (each.group, 4, "accuracy")
            )
            assert y == metric


def test_a_page_of_a_sweep_says_what_it_found(run):
    (exhibit,) = exhibits(run)
    assert BEFORE in exhibit.remarks
    assert exhibit.facts["Examples"] == "160" and exhibit.facts["Precision"] == "float32"
    page = iso.report(run).text
    learnt = sweep_results(run.readings, run.origin).shared["learnt"]
    assert "of reviews without a penalty" in page
    assert ("best of 2 weights of istar" in page) is bool(learnt)
    assert ("not learnt" in page) is not learnt
    assert '<section id="sweep"' in page


def test_a_figure_of_a_sweep_obeys_measure_and_site(run, tmp_path):
    usual = iso.figure(run, tmp_path / "a.svg", kind="sweep")
    other = iso.figure(
        run, tmp_path / "b.svg", kind="sweep", measures=["twonn"], site="resid.2"
    )
    assert usual.read_text() != other.read_text()
    with pytest.raises(IsoscopeError, match="no measure is called 'twonnn'"):
        iso.figure(run, tmp_path / "c.svg", kind="sweep", measures=["twonnn"])


@pytest.mark.parametrize("key", ["metric", "baseline", "name"])
def test_a_run_without_its_task_is_damaged_and_still_shown(run, tmp_path, key):
    place = tmp_path / "stars"
    shutil.copytree(run.path, place)
    manifest = json.loads((place / "run.json").read_text())
    del manifest["origin"]["task"][key]
    (place / "run.json").write_text(json.dumps(manifest))
    loaded = iso.load(place)
    with pytest.raises(StoreError, match="expected the cells of a sweep"):
        grid_of(loaded)
    assert "expected the cells of a sweep" in iso.report(loaded).text
