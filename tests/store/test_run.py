"""Reading back: nothing is trusted until it has been checked."""

import json
import os
import pickle

import numpy as np
import pytest

from isoscope.accumulate import Moments, Tally
from isoscope.accumulate.survey import Survey
from isoscope.errors import StoreError
from isoscope.store import load, save
from isoscope.store.origin import Settings
from isoscope.store.run import mark
from isoscope.study.lanes import run
from isoscope.types import Chunk

PLACE = ("rows", "all")


@pytest.fixture
def survey():
    rows = np.random.default_rng(7).normal(size=(40, 3)).astype(np.float32)
    return run([Chunk(rows, "a", 0)], PLACE, (Tally, Moments))[0]


@pytest.fixture
def folder(here, survey, readings, origin, config):
    return save(here / "run", survey, readings(), origin(), config)


def test_a_run_comes_back_as_it_was(folder, survey, readings, origin, config):
    back = load(folder)
    assert back.path == folder
    assert back.readings == list(readings())
    assert back.origin == origin()
    assert back.settings == Settings(zeta=0.2)
    assert back.config == config
    assert back.left_out == readings().left_out
    assert isinstance(back.survey, Survey)
    ours, theirs = survey.to_state(), back.survey.to_state()
    assert ours[0] == theirs[0]
    for name, array in ours[1].items():
        np.testing.assert_array_equal(theirs[1][name], array)


def test_the_survey_is_read_once_and_can_be_merged(folder, survey):
    back = load(folder)
    assert back.survey is back.survey
    back.survey.merge(survey)


def test_a_path_may_be_text(folder):
    assert load(str(folder)).readings


def slug_of(path):
    with pytest.raises(StoreError) as caught:
        load(path)
    return caught.value.slug


def test_what_is_not_there_is_distinguished_from_what_is_no_run(here):
    (here / "file").write_text("x")
    (here / "empty").mkdir()
    assert slug_of(here / "nothing") == "store-missing"
    assert slug_of(here / "file") == "store-missing"
    assert slug_of(here / "empty") == "store-unfinished"
    assert slug_of("\0") == "store-missing"


def test_an_unfinished_run_is_no_run(folder):
    (folder / "run.json").unlink()
    with pytest.raises(StoreError, match=r"which has no run\.json"):
        load(folder)


def test_an_interrupted_overwrite_says_where_the_old_run_is(folder):
    folder.rename(folder.parent / ".isoscope-run-0123abcd.old")
    with pytest.raises(StoreError) as caught:
        load(folder)
    assert ".isoscope-run-0123abcd.old" in caught.value.hint


def edit(folder, **changes):
    path = folder / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, **changes}))


def test_a_newer_schema_is_refused_whatever_else_it_says(folder):
    (folder / "run.json").write_text('{"schema": 2, "surprise": []}')
    with pytest.raises(StoreError, match="expected a run of schema 1 or less, got 2") as caught:
        load(folder)
    assert caught.value.slug == "store-newer"
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"schema": 0}', '{"schema": "1"}', '{"schema": 1}', "\xff", "[" * 100_000],
)
def test_a_run_json_that_is_none_is_refused(folder, content):
    (folder / "run.json").write_bytes(content.encode("latin-1"))
    assert slug_of(folder) == "store-damaged"


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": {}},
        {"origin": {"schema": 1, "kind": "vectors", "sources": 3, "settings": {}, "seed": 0}},
        {"origin": {"schema": 2, "kind": "x", "sources": [], "settings": {}, "seed": 0}},
        {"files": {}},
        {"files": {"../../etc/passwd": {"bytes": 1, "blake2b": ""}}},
        {"left_out": 3},
    ],
)
def test_a_run_json_with_wrong_fields_is_refused(folder, changes):
    edit(folder, **changes)
    assert slug_of(folder) == "store-damaged"


@pytest.mark.parametrize("name", ["state.safetensors", "readings.parquet"])
def test_a_missing_or_shortened_file_is_found_at_once(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1])
    assert slug_of(folder) == "store-damaged"
    (folder / name).unlink()
    assert slug_of(folder) == "store-damaged"


def turned(path, place=-9):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_one_turned_bit_in_the_readings_is_found(folder):
    turned(folder / "readings.parquet")
    with pytest.raises(StoreError, match="its checksum is not the one that was written"):
        load(folder)


def test_one_turned_bit_in_the_state_is_found_when_the_survey_is_requested(folder):
    turned(folder / "state.safetensors")
    with pytest.raises(StoreError, match="its checksum is not the one that was written"):
        _ = load(folder).survey


def forged(folder, name, content):
    """Replace a file and its checksum with it."""
    (folder / name).write_bytes(content)
    files = json.loads((folder / "run.json").read_text())["files"]
    real = mark(folder / name)
    files[name] = {"bytes": real.bytes, "blake2b": real.blake2b}
    edit(folder, files=files)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("/tmp/isoscope-was-here",)


@pytest.mark.parametrize(
    "content",
    [b"", b"junk" * 100, pickle.dumps(Bomb()), (2**62).to_bytes(8, "little") + b"{}"],
    ids=["empty", "junk", "pickle", "huge header"],
)
def test_a_forged_file_with_the_right_checksum_does_no_harm(folder, content):
    forged(folder, "state.safetensors", content)
    with pytest.raises(StoreError, match="cannot read"):
        _ = load(folder).survey
    forged(folder, "readings.parquet", content)
    assert slug_of(folder) == "store-damaged"
    assert not os.path.exists("/tmp/isoscope-was-here")  # noqa: PTH110


def test_a_state_that_is_whole_but_not_a_survey_is_refused(here, box, readings, origin, config):
    folder = save(here / "run", box(), readings(), origin(), config)
    with pytest.raises(StoreError, match="cannot read") as caught:
        _ = load(folder).survey
    assert caught.value.slug == "store-damaged"


@pytest.mark.parametrize(
    "content", [b"a: [", b"- 1", b"\xff\xfe", b"!!python/object:os.system x"]
)
def test_a_config_that_is_none_is_refused_on_request(folder, content):
    (folder / "config.yaml").write_bytes(content)
    back = load(folder)
    with pytest.raises(StoreError, match=r"config\.yaml"):
        _ = back.config


def test_a_missing_config_is_reported(folder):
    (folder / "config.yaml").unlink()
    with pytest.raises(StoreError, match="it is not there"):
        _ = load(folder).config


def test_an_endless_run_json_is_not_read(folder, monkeypatch):
    monkeypatch.setattr("isoscope.store.run.LARGEST", 10)
    with pytest.raises(StoreError, match="expected at most 10 bytes"):
        load(folder)


def test_one_site_is_read_without_the_others(here, survey, readings, origin, config):
    whole = Survey({**survey.held, ("other", "all"): survey.held[PLACE]}, trouble={"x": "y"})
    back = load(save(here / "sites", whole, readings(), origin(), config))
    assert set(back.survey_of("rows").held) == {PLACE}
    assert back.survey_of("none").held == {}
    assert back.trouble == {"x": "y"}


def test_one_site_of_a_damaged_state_is_refused(folder):
    state = folder / "state.safetensors"
    content = bytearray(state.read_bytes())
    content[-1] ^= 1
    state.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="checksum"):
        load(folder).survey_of("rows")


def test_trouble_is_reported_without_reading_the_state(here, survey, readings, origin, config):
    whole = Survey(survey.held, trouble={"x": "NaN"})
    folder = save(here / "sites", whole, readings(), origin(), config)
    turned(folder / "state.safetensors")
    assert load(folder).trouble == {"x": "NaN"}
    with pytest.raises(StoreError, match="checksum"):
        _ = load(folder).sites


def test_places_are_reported_and_read_one_by_one(here, survey, readings, origin, config):
    held = survey.held[PLACE]
    whole = Survey({PLACE: held, ("rows", "no-sink"): held, ("other", "all"): held})
    back = load(save(here / "sites", whole, readings(), origin(), config))
    assert back.sites == ("rows", "other")
    assert back.places == tuple(whole.held)
    assert set(back.survey_at(PLACE).held) == {PLACE}
    assert back.survey_at(("none", "all")).held == {}
    assert [list(each.held) for each in back.by_site(["other"])] == [[("other", "all")]]
    assert [len(each.held) for each in back.by_site()] == [2, 1]


def test_files_such_as_checkpoints_are_part_of_a_run(here, survey, readings, origin, config):
    files = here / "files"
    (files / "step_0").mkdir(parents=True)
    (files / "step_0" / "weights").write_bytes(b"numbers")
    (files / "metrics.csv").write_text("step\n")
    folder = save(here / "run", survey, readings(), origin(), config, files=files)
    assert (folder / "step_0" / "weights").read_bytes() == b"numbers"
    marks = load(folder).manifest.files
    assert marks["step_0/weights"] == mark(folder / "step_0" / "weights")
    assert "metrics.csv" in marks
    # it is replaced with them, and not with anything else in it
    save(here / "run", survey, readings(), origin(), config, overwrite=True)
    assert not (folder / "step_0").exists()
    (folder / "metrics.csv").touch()
    with pytest.raises(StoreError, match=r"also holds 'metrics\.csv'"):
        save(here / "run", survey, readings(), origin(), config, overwrite=True)
