"""Runs and readings made into what a page shows."""

import json
import shutil
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import ConfigError, StoreError
from isoscope.exhibit.exhibit import exhibits, facts_of
from isoscope.types import DimensionScores, SpectrumCurve


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exhibit")
    rows = np.random.default_rng(0).normal(size=(400, 12)) + 0.5
    iso.measure(rows, output=folder / "run", name="cloud")
    return folder / "run"


def test_a_folder_a_run_and_readings_are_all_taken(run):
    (one,) = exhibits(run)
    (two,) = exhibits([iso.load(run)])
    (three,) = exhibits(iso.read(run))
    assert one.name == two.name == three.name == "run"
    assert len(one.readings) == len(three.readings)
    assert one.noun == "vectors"
    assert set(map(type, one.curves)) >= {SpectrumCurve, DimensionScores}


def test_an_exhibit_is_shown_as_it_is_and_keeps_its_name(run):
    (one,) = exhibits(run)
    named = replace(one, name="my model")
    assert exhibits(named) == [named]
    assert [each.name for each in exhibits([named, run])] == ["my model", "run"]


def test_what_was_said_of_the_corpus_is_a_remark(tiny, texts, tmp_path):
    iso.survey(tiny, texts, output=tmp_path / "cut", length=12, sites=["embed"])
    (one,) = exhibits(tmp_path / "cut")
    assert any(remark.endswith("documents were truncated") for remark in one.remarks)


def test_levels_are_those_of_as_many_rows(run):
    (one,) = exhibits(run)
    assert one.levels["rows", "all", "mean-cosine"] == 0
    assert 0.9 < one.levels["rows", "all", "isoscore"] < 1


def test_facts_say_where_a_run_comes_from(run):
    facts = facts_of(iso.load(run))
    assert facts["Source"] == "cloud"
    assert facts["Rows"] == "400"
    assert "isoscope" in facts["Versions"]
    assert "Model" not in facts


def test_runs_of_one_name_are_distinguished(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    one, two = exhibits([run, tmp_path / "run"])
    assert one.name != two.name
    assert [each.name for each in exhibits([run, run])] == [
        f"{run.parent.name}/run (1)",
        f"{run.parent.name}/run (2)",
    ]


def test_a_run_whose_state_is_damaged_still_shows_its_readings(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    state = copy / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-8] + b"12345678")
    (one,) = exhibits(copy)
    assert one.readings and not one.curves
    assert one.remarks[0].startswith("only readings are shown")


def test_a_run_of_a_newer_schema_is_refused_in_one_line(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**manifest, "schema": 99}))
    with pytest.raises(StoreError, match="schema 1 or less, got 99"):
        exhibits(copy)


def test_no_runs_are_refused():
    with pytest.raises(ConfigError, match="at least 1 run"):
        exhibits([])


@pytest.mark.parametrize("given", [lambda found: found, lambda found: [found]])
def test_records_that_are_no_readings_are_refused(run, given):
    with pytest.raises(ConfigError, match="shows runs and readings, got causes"):
        exhibits(given(iso.explain(run)))


def test_a_page_has_no_folders_of_the_disk_it_was_made_on(run):
    loaded = iso.load(run)
    words = [
        "/usr/bin/isoscope",
        "measure",
        "/home/ann/x.npy",
        "-o",
        "~/runs/a",
        "--id=/d/i.npy",
    ]
    manifest = msgspec.structs.replace(loaded.manifest, command=[*words, "runs/b"])
    facts = facts_of(replace(loaded, manifest=manifest))
    assert facts["Command"] == "isoscope measure x.npy -o a --id=i.npy runs/b"
