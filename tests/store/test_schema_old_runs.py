"""Runs that earlier versions wrote as schema 1 are read, reported and compared as before.

The folders and `expected.json` were written by the code of before origins were typed:
`vectors` and `other` by `measure`, the others by `save` with the keys of surveys and sweeps.
Tables of comparisons are as they are printed today.
"""

import json
import shutil
from pathlib import Path

import pytest

import isoscope as iso
from isoscope.exhibit.exhibit import facts_of
from isoscope.lab.sweep.results import grid_of, sweep_results
from isoscope.store import SCHEMA, Origin, load

OLD = Path(__file__).parent / "schema1"
EXPECTED = json.loads((OLD / "expected.json").read_text())
NAMES = sorted(EXPECTED["origins"])
PAIRS = sorted(EXPECTED["compare"])


def near(expected):
    """Compare numbers to nine digits, whatever they are nested in."""
    if isinstance(expected, float):
        return pytest.approx(expected, rel=1e-9)
    if isinstance(expected, list):
        return [near(each) for each in expected]
    if isinstance(expected, dict):
        return {key: near(value) for key, value in expected.items()}
    return expected


def test_there_is_no_schema_without_its_old_runs():
    assert SCHEMA == 1


@pytest.mark.parametrize("name", NAMES)
def test_an_old_run_is_read(name):
    found = iso.read(OLD / name)
    assert found.to_dict() == EXPECTED["read"][name]
    assert list(found.left_out) == EXPECTED["left_out"][name]


@pytest.mark.parametrize("name", NAMES)
def test_the_origin_of_an_old_run_is_kept_whole(name):
    record = EXPECTED["origins"][name]
    whole = load(OLD / name).origin.to_dict()
    if "task" in record:
        assert whole["task"].pop("diverged") == []  # was not listed then
    assert whole == record


@pytest.mark.parametrize("name", NAMES)
def test_facts_of_an_old_run_are_reported(name):
    assert facts_of(load(OLD / name)) == EXPECTED["facts"][name]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_an_old_run_is_made(name):
    page = iso.report(OLD / name)
    for text in EXPECTED["facts"][name].values():
        assert text.replace("<", "&lt;") in page.text
    assert "expected the cells of a sweep" not in page.text


@pytest.mark.parametrize("pair", PAIRS)
def test_old_runs_are_compared(pair):
    found = iso.compare(*(OLD / name for name in pair.split()))
    assert str(found) == EXPECTED["compare"][pair]
    assert list(found.notes("json")) == EXPECTED["notes"][pair]


def test_measures_are_read_from_the_summaries_of_an_old_run():
    found = iso.read(OLD / "vectors", measures=["effective-rank", "isoscore"])
    assert found.to_dict() == near(EXPECTED["later"])


def test_old_runs_are_merged(tmp_path):
    for name in ("vectors", "other"):
        shutil.copytree(OLD / name, tmp_path / name)
    found = iso.merge([tmp_path / "vectors", tmp_path / "other"], tmp_path / "merged")
    assert found.to_dict() == near(EXPECTED["merged"])


def test_an_old_sweep_is_shown_with_the_name_of_its_model():
    run = load(OLD / "sweep")
    found = sweep_results(run.readings, run.origin).to_dict()
    assert found == near([{**line, "model": "tiny-bert"} for line in EXPECTED["sweep"]])
    grid = grid_of(run)
    assert (len(grid.weights), len(grid.cells)) == (3, 20)  # a half: means over layers


def test_keys_of_other_versions_survive(tmp_path):
    shutil.copytree(OLD / "survey", tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    manifest = json.loads(path.read_text())
    origin = manifest["origin"]
    origin["cluster"] = {"nodes": 4}
    origin["sources"][0]["language"] = "en"
    origin["settings"]["rounding"] = None
    origin["model"]["quantised"] = ["q4"]
    path.write_text(json.dumps(manifest))
    found = load(tmp_path / "run").origin
    assert found.to_dict() == origin
    assert Origin.from_dict(found.to_dict()) == found
    assert found.rest == {"cluster": {"nodes": 4}}
