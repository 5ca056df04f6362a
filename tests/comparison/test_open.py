"""What a comparison is given: folders, runs, files of vectors, arrays."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.comparison.open import names_of, two_runs
from isoscope.store import load

ROW = [("embed", "isoscore", 0.5, 0.4, 0.6)]


@pytest.fixture
def clouds(tmp_path):
    """Two models' vectors of the same 400 texts, in files, and those of other texts."""
    rng = np.random.default_rng(0)
    texts, others = rng.normal(size=(2, 400, 8))
    rows = [texts + 0.7, texts + 0.1 * rng.normal(size=texts.shape) + 0.75, others[:90]]
    for name, cloud in zip(("old.npy", "new.npy", "few.npy"), rows, strict=True):
        np.save(tmp_path / name, cloud.astype(np.float32))
    return tmp_path


def test_a_run_stays_and_a_folder_is_loaded(handmade):
    run = load(handmade("a", ROW))
    with two_runs(run, run.path) as (first, second):
        assert first is run
        assert second.readings == run.readings


def test_vectors_are_measured_into_a_folder_that_goes_again(clouds):
    rows = np.load(clouds / "old.npy")
    with two_runs(clouds / "old.npy", rows, ["isoscore"]) as (first, second):
        assert [r.measure for r in first.readings] == ["isoscore"]
        assert first.readings[0].value == second.readings[0].value
        place = first.path
    assert not place.exists()


def test_vectors_are_paired_row_by_row(clouds):
    changes = iso.compare(clouds / "old.npy", np.load(clouds / "new.npy"))
    assert all(each.paired for each in changes if each.low is not None)
    assert tuple(changes.shared.values()) == ("old.npy", "vectors b")
    moved = next(each for each in changes if each.measure == "mean-cosine")
    assert moved.verdict == "changed"
    apart = iso.compare(clouds / "old.npy", clouds / "few.npy")
    assert not any(each.paired for each in apart)


def test_things_of_one_name_are_told_apart_by_their_paths(handmade, tmp_path):
    (tmp_path / "old").mkdir()
    first, second = load(handmade("a", ROW)), load(handmade("old/a", ROW))
    assert names_of(first, second) == (str(tmp_path / "a"), str(tmp_path / "old" / "a"))
    assert names_of(first, handmade("b", ROW)) == ("a", "b")
    assert names_of(tmp_path / "x" / "v.npy", tmp_path / "y" / "v.npy") == (
        str(tmp_path / "x" / "v.npy"),
        str(tmp_path / "y" / "v.npy"),
    )
    assert names_of(np.ones((2, 2)), np.ones((2, 2))) == ("vectors a", "vectors b")
