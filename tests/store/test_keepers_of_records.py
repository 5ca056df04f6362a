"""The keeper of records: whole records only, of this very run."""

import math
import os

import numpy as np
import pytest

from isoscope.errors import StoreError
from isoscope.store.keepers import RecordKeeper


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run" / "stage-1"


def test_what_was_added_comes_back_as_plain_values(folder):
    keeper = RecordKeeper(3, folder)
    assert keeper.missing() == [0, 1, 2]
    keeper.add(1, {"value": np.float64(0.1), "list": (1, 2), "by number": {3: "x"}})
    again = RecordKeeper(3, folder)
    assert again.missing() == [0, 2]
    plain = {"value": 0.1, "list": [1, 2], "by number": {"3": "x"}}
    assert again.records == keeper.records == {1: plain}


@pytest.mark.parametrize("on_disk", [True, False])
def test_infinities_and_nan_survive(folder, on_disk):
    place = folder if on_disk else None
    keeper = RecordKeeper(1, place)
    values = [math.inf, -math.inf, math.nan, -0.0, 5e-324, 2**63 - 1, None]
    keeper.add(0, {"values": values})
    for found in (keeper, RecordKeeper(1, folder)) if on_disk else (keeper,):
        (record,) = found.total()
        assert str(record["values"]) == str(values)


def test_all_records_come_in_the_order_of_the_units(folder):
    keeper = RecordKeeper(3, folder)
    for number in (2, 0, 1):
        keeper.add(number, {"number": number})
    keeper.flush()
    assert [each["number"] for each in RecordKeeper(3, folder).total()] == [0, 1, 2]


def test_without_a_folder_it_stays_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keeper = RecordKeeper(2)
    keeper.add(1, {"list": (1,)})
    assert keeper.missing() == [0]
    keeper.add(0, {"list": ()})
    assert keeper.total() == [{"list": []}, {"list": [1]}]
    assert list(tmp_path.iterdir()) == []


def changed(path):
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def moved(path):
    path.rename(path.with_name(path.name.replace("unit-0-", "unit-2-")))


def beyond(path):
    path.rename(path.with_name(path.name.replace("unit-0-", "unit-3-")))


@pytest.mark.parametrize("harm", [changed, cut, moved, beyond])
def test_a_file_that_is_not_what_it_says_is_done_again(folder, harm):
    RecordKeeper(3, folder).add(0, {"value": "one"})
    harm(next(folder.glob("unit-*")))
    assert RecordKeeper(3, folder).missing() == [0, 1, 2]
    assert list(folder.iterdir()) == []


def test_a_record_of_another_run_does_not_count(folder):
    RecordKeeper(3, folder, id="one run").add(0, {})
    assert RecordKeeper(3, folder, id="one run").missing() == [1, 2]
    assert RecordKeeper(3, folder, id="another").missing() == [0, 1, 2]


def test_what_was_being_written_when_it_was_killed_does_not_count(folder):
    RecordKeeper(3, folder)
    (folder / "77-unit-0.part").write_bytes(b"\x81")
    (folder / "notes.txt").write_text("of the user")
    (folder / f"unit-1-{'0' * 32}.msgpack").mkdir()
    assert RecordKeeper(3, folder).missing() == [0, 1, 2]
    assert not (folder / "77-unit-0.part").exists()
    assert (folder / "notes.txt").exists()


def test_a_kill_before_the_rename_leaves_no_record(folder, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    keeper = RecordKeeper(1, folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(Killed):
            keeper.add(0, {})
    assert RecordKeeper(1, folder).missing() == [0]


def test_a_full_disk_is_an_error_of_ours(folder, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    keeper = RecordKeeper(1, folder)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        keeper.add(0, {})
    assert caught.value.slug == "store-write"


def test_what_is_not_plain_is_refused(folder):
    with pytest.raises(TypeError, match="cannot store a object"):
        RecordKeeper(1, folder).add(0, {"value": object()})
