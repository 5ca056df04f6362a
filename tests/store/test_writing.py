"""Files of a run are whole or not there, and faults of the disk are errors of ours."""

import os

import pytest

from isoscope.errors import StoreError
from isoscope.store.atomic import write_whole, writing


def test_a_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "begun.json"
    write_whole(path, b"old")
    seen = []
    fsync = os.fsync

    def look(descriptor):
        seen.append(path.read_bytes())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    write_whole(path, b"new")
    assert seen == [b"old"] and path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["begun.json"]


def test_faults_of_the_disk_name_the_folder(tmp_path):
    with pytest.raises(StoreError, match="No space left") as caught, writing(tmp_path):
        raise OSError(28, "No space left on device")
    assert caught.value.slug == "store-write"
    assert str(tmp_path) in caught.value.problem
    with pytest.raises(ValueError, match="other"), writing(tmp_path):
        raise ValueError("other")
