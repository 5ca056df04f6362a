"""sweep: resumable, saved as a run, and a table that says what a weight changes."""

import json
import re
import signal
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from forks import Fork
from isoscope.engine import Notify
from isoscope.errors import IsoscopeError
from isoscope.lab.sweep.results import NOT_LEARNT, ONE_SEED, cell_of, sweep_results
from isoscope.lab.sweep.spec import SweepSpec
from isoscope.lab.sweep.worker import CellRunner, layers_of
from isoscope.store import Origin
from isoscope.store.schema import FILES

SOURCES = Path(__file__).parents[2] / "src"
QUICK = {
    "label": "stars",
    "weights": [-3, 3],
    "seeds": 2,
    "steps": 4,
    "length": 32,
    "probe": 24,
    "threads": 1,
    "learning_rate": 5e-3,
}


@pytest.fixture(scope="module")
def swept(tiny, reviews, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "sweep"
    return run, iso.sweep(tiny, reviews, output=run, **QUICK)


def test_a_line_for_each_weight_with_zero_among_them(swept):
    _, found = swept
    assert [line.weight for line in found] == [-3.0, 0.0, 3.0]
    assert [line.seeds for line in found] == [[0, 1]] * 3
    record = found.to_dict()[0]
    assert {"model", "task", "penalty", "metric", "baseline", "learnt", "steps"} <= set(record)
    assert record["task"] == "reviews" and record["metric"] == "accuracy"
    assert record["baseline"] == 0.5
    assert set(record["after"]["isoscore-star"]) == {"resid", "resid.0", "resid.1", "resid.2"}


def test_the_tables_are_of_the_task_and_of_the_geometry_from_its_start(swept):
    _, found = swept
    table, geometry = found.tables
    heads = [column.head for column in table.columns]
    assert heads[:3] == ["weight", "accuracy", "difference"]
    assert [row[0] for row in table.rows] == ["-3", "0", "3"]
    assert [row[0] for row in geometry.rows] == ["before", "-3", "0", "3"]
    assert all(cell for row in geometry.rows for cell in row)
    assert any("over the same seeds" in text for text in table.warnings)


def test_the_run_holds_everything_that_was_found(swept):
    run, found = swept
    loaded = iso.load(run)
    assert loaded.origin.kind == "sweep"
    again = sweep_results(loaded.readings, loaded.origin)
    assert again.to_dict() == found.to_dict()
    assert again.remarks == found.remarks
    names = {each.measure for each in iso.read(run)}
    assert {"accuracy", "loss", "isoscore-star", "twonn"} <= names
    assert {each.name for each in run.iterdir()} == set(FILES)


def test_the_config_of_a_run_does_it_again(swept, tiny, reviews, tmp_path):
    run, found = swept
    flags = dict(iso.load(run).config["sweep"])
    assert flags.pop("model") == str(tiny) and flags.pop("data") == str(reviews)
    flags["weights"] = [float(each) for each in flags["weights"].split(",")]
    given = {name.replace("-", "_"): value for name, value in flags.items()}
    again = iso.sweep(tiny, reviews, output=tmp_path / "again", **given)
    assert again.to_dict() == found.to_dict()


def test_weights_and_rows_are_written_as_they_were(tiny, reviews, tmp_path):
    given = QUICK | {"weights": [1 / 3], "seeds": 1, "steps": 1, "layers": [0, 1], "rows": None}
    found = iso.sweep(tiny, reviews, output=tmp_path / "run", **given)
    flags = iso.load(tmp_path / "run").config["sweep"]
    assert float(flags["weights"]) == 1 / 3
    assert flags["layers"] == "0,1" and flags["rows"] == 0
    assert iso.sweep(tiny, reviews, **(given | {"rows": 0})).to_dict() == found.to_dict()


def stopped_at_the_fourth(model, task, output, said):
    """Begin a sweep whose fourth unit is done and never handed over; say when it is."""
    run, calls = CellRunner.run, []

    def slow(self, unit):
        found = run(self, unit)
        calls.append(unit)
        if len(calls) == 4:
            said.touch()
            signal.pause()
        return found

    CellRunner.run = slow
    iso.sweep(model, task, output=output, **QUICK)


def test_a_sweep_that_was_killed_is_resumed_with_the_same_numbers(
    swept, tiny, reviews, tmp_path
):
    run = tmp_path / "sweep"
    said = tmp_path / "said"
    process = Fork(stopped_at_the_fourth, tiny, reviews, run, said)
    try:
        while not said.exists():
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        process.kill()
    assert process.code == -signal.SIGKILL
    kept = sorted(path.name.split("-")[1] for path in run.glob("stage-1/unit-*"))
    assert kept == ["0", "1", "2"]
    with pytest.raises(IsoscopeError) as caught:
        iso.sweep(tiny, reviews, output=run, **(QUICK | {"steps": 5}))
    assert caught.value.slug == "resume-other"
    before = time.time()
    found = iso.sweep(tiny, reviews, output=run, **QUICK)
    assert time.time() >= before
    assert found.to_dict() == swept[1].to_dict()
    one, other = (
        [{**asdict(r), "run": ""} for r in iso.load(each).readings] for each in (run, swept[0])
    )
    assert one == other


def test_a_run_that_is_there_is_replaced_only_on_request(swept, tiny, reviews):
    run, found = swept
    with pytest.raises(IsoscopeError) as caught:
        iso.sweep(tiny, reviews, output=run, **QUICK | {"seed": 7})
    assert caught.value.slug == "store-exists"
    assert f"isoscope report {run}" in caught.value.hint
    assert iso.sweep(tiny, reviews, output=run, **QUICK).to_dict() == found.to_dict()
    again = iso.sweep(tiny, reviews, output=run, overwrite=True, **QUICK)
    assert again.to_dict() == found.to_dict()
    assert [path.name for path in run.parent.iterdir()] == ["sweep"]


def test_the_signs_of_a_weight_move_isoscore_as_they_say(tiny, reviews):
    given = QUICK | {"weights": [-5, 5], "steps": 40, "seeds": 1}
    low, plain, high = iso.sweep(tiny, reviews, **given)
    for name in ("isoscore", "isoscore-debiased", "isoscore-star"):
        values = [line.after[name]["resid"] for line in (low, plain, high)]
        assert values[0] < values[1] < values[2], name


def test_one_seed_says_that_it_is_one(tiny, reviews):
    found = iso.sweep(tiny, reviews, **(QUICK | {"seeds": 1, "weights": [1]}))
    assert ONE_SEED in found.remarks
    assert found[1].difference.low is None and found.shared["learnt"] is None


def test_the_same_difference_with_every_seed_has_no_interval(swept):
    loaded = iso.load(swept[0])
    found = [
        replace(each, value=0.6 + 0.01 * cell_of(each.group)[0])
        if each.measure == "accuracy"
        else each
        for each in loaded.readings
    ]
    again = sweep_results(found, loaded.origin)
    assert [line.difference.p for line in (again[0], again[2])] == [None, None]
    assert any("no interval and no p: weight -3, 3" in text for text in again.remarks)
    assert not any("Holm" in text for text in again.remarks)
    heads = [column.head for column in again.tables[0].columns]
    assert "difference" in heads and "p (Holm)" not in heads


def test_a_task_that_was_not_learnt_is_marked(tiny, tmp_path):
    rng = np.random.default_rng(0)
    words = ["river", "house", "boats", "fire"]
    rows = [
        {"text": " ".join(rng.choice(words, size=6)), "stars": int(rng.integers(2))}
        for _ in range(80)
    ]
    path = tmp_path / "noise.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = iso.sweep(tiny, path, **(QUICK | {"weights": [1], "seeds": 3, "steps": 2}))
    assert found.shared["learnt"] is False
    assert any(text.startswith(NOT_LEARNT[:12]) for text in found.remarks)


def test_cells_that_diverge_are_excluded_and_reported(tiny, reviews, tmp_path):
    given = QUICK | {"weights": [1, 1e39]}
    found = iso.sweep(tiny, reviews, output=tmp_path / "run", **given)
    assert [line.weight for line in found] == [0.0, 1.0]
    assert found[1].seeds == [0, 1]
    assert found.to_dict()[0]["diverged"] == [f"weight=1e+39,seed={seed}" for seed in (0, 1)]
    assert any("weight 1e+39 with seed 0, 1" in text for text in found.remarks)
    loaded = iso.load(tmp_path / "run")
    again = sweep_results(loaded.readings, loaded.origin)
    assert again.to_dict() == found.to_dict()
    record = loaded.origin.to_dict()
    del record["task"]["diverged"]  # as in older runs
    assert len(sweep_results(loaded.readings, Origin.from_dict(record))) == 2


def test_where_every_weight_diverges_the_cells_are_kept_and_it_is_reported(
    tiny, reviews, tmp_path
):
    for _ in range(2):
        with pytest.raises(IsoscopeError) as caught:
            given = QUICK | {"weights": [1e39], "seeds": 1}
            iso.sweep(tiny, reviews, output=tmp_path / "run", **given)
        assert caught.value.slug == "sweep-loss"
        assert len(list(tmp_path.glob("run/stage-1/unit-*"))) == 3


def test_scores_and_steps_between_are_read(tiny, reviews, tmp_path):
    given = QUICK | {"weights": [1], "every": 2}
    given.pop("label")
    run = tmp_path / "run"
    iso.sweep(tiny, reviews, score="score", output=run, **given)
    readings = iso.load(run).readings
    assert {each.step for each in readings} == {0, 2, 4}
    assert any(each.measure == "spearman" for each in readings)


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({"weights": ["nan"]}, "penalty-weight"),
        ({"weights": []}, "penalty-weight"),
        ({"penalty": "istarr"}, "unknown-penalty"),
        ({"seeds": 0}, "number-too-small"),
        ({"steps": 0}, "number-too-small"),
        ({"batch": 1}, "number-too-small"),
        ({"learning_rate": 0.0}, "number-range"),
        ({"learning_rate": float("nan")}, "number-range"),
        ({"zeta": 2.0}, "number-range"),
        ({"seed": -1}, "seed"),
        ({"hold_out": 1.0}, "number-range"),
        ({"label": "text"}, "task-class"),
        ({"label": "star"}, "unknown-column"),
        ({"at": "middle"}, "unknown-place-of-a-state"),
        ({"layers": [7]}, "penalty-layers"),
        ({"layers": "first"}, "penalty-layers"),
        ({"layers": []}, "penalty-layers"),
        ({"rows": 1}, "number-too-small"),
        ({"as_published": True}, "penalty-published"),
    ],
)
def test_what_cannot_be_done_is_reported_and_leaves_nothing_behind(
    tiny, reviews, tmp_path, given, slug
):
    run = tmp_path / "run"
    with pytest.raises(IsoscopeError) as caught:
        iso.sweep(tiny, reviews, output=run, **(QUICK | {"weights": [1]} | given))
    assert caught.value.slug == slug
    assert not run.exists()


def test_sweeps_are_not_merged(swept, tmp_path):
    with pytest.raises(IsoscopeError) as caught:
        iso.merge([swept[0], swept[0]], tmp_path / "merged")
    assert caught.value.slug == "merge-sweep"


def test_layers_are_words_or_numbers():
    assert layers_of(None) is None
    assert layers_of(("last",)) == "last"
    assert layers_of(SweepSpec.of(model="m", data="d", layers="0,2").layers) == (0, 2)
    assert layers_of(SweepSpec.of(model="m", data="d", layers=[0, 2]).layers) == (0, 2)
    assert layers_of(SweepSpec.of(model="m", data="d", layers=2).layers) == (2,)
    with pytest.raises(IsoscopeError, match="numbers of layers"):
        layers_of(("first",))


def test_cells_and_their_time_are_told_before_the_first(tiny, reviews):
    said = []
    spec = SweepSpec.of(model=str(tiny), data=str(reviews), **QUICK)
    plan = spec.open(Notify(say=said.append)).plan()
    cells = len(plan.weights) * len(plan.seeds)
    assert plan.total() == cells
    (text,) = [each for each in said if "cells" in each]
    assert re.fullmatch(
        rf"{cells} cells of {QUICK['steps']} steps: {len(plan.weights)} weights \(.*\), each "
        rf"with {len(plan.seeds)} seeds; about \d+ s here",
        text,
    )
