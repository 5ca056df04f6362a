"""One folder in place of another, in one step."""

import errno
import os
import time

import numpy as np
import pytest

import isoscope
from isoscope.accumulate import ArrayBlock, Tally
from isoscope.accumulate.survey import Survey
from isoscope.errors import StoreError
from isoscope.store import atomic
from isoscope.store.state import State


def filled(path, word):
    path.mkdir()
    (path / "word").write_text(word)
    return path


def test_a_staged_folder_is_beside_the_target_and_gone_afterwards(here):
    with atomic.staging(here / "deep" / "run") as folder:
        assert folder.parent == here / "deep"
        assert folder.stat().st_mode & 0o777 == (here / "deep").stat().st_mode & 0o777
    assert list((here / "deep").iterdir()) == []


def test_a_staged_folder_is_gone_after_a_failure_too(here):
    with pytest.raises(KeyboardInterrupt), atomic.staging(here / "run") as folder:
        (folder / "half").write_text("half")
        raise KeyboardInterrupt
    assert list(here.iterdir()) == []


def test_a_folder_takes_an_empty_place(here):
    atomic.put_in_place(filled(here / "new", "new"), here / "run")
    assert (here / "run" / "word").read_text() == "new"
    assert [each.name for each in here.iterdir()] == ["run"]


def test_two_folders_change_places(here):
    old, new = filled(here / "run", "old"), filled(here / "new", "new")
    atomic.put_in_place(new, old)
    assert (here / "run" / "word").read_text() == "new"
    assert (here / "new" / "word").read_text() == "old"


def cannot(*_):
    raise OSError(errno.EINVAL, "cannot swap here")


def test_where_folders_cannot_be_swapped_two_renames_do(here, monkeypatch):
    monkeypatch.setattr(atomic, "exchange", cannot)
    old, new = filled(here / "run", "old"), filled(here / "new", "new")
    atomic.put_in_place(new, old)
    assert (here / "run" / "word").read_text() == "new"
    assert [each.name for each in here.iterdir()] == ["run"]


def test_the_old_folder_comes_back_when_the_second_rename_fails(here, monkeypatch):
    monkeypatch.setattr(atomic, "exchange", cannot)
    old, new = filled(here / "run", "old"), here / "not there"
    monkeypatch.setattr(atomic, "sync", lambda path: None)
    with pytest.raises(FileNotFoundError):
        atomic.put_in_place(new, old)
    assert (here / "run" / "word").read_text() == "old"


def test_a_run_that_was_replaced_is_found_by_its_name_only(here):
    for name in ("run", "run-2"):
        (here / f".isoscope-{name}-0123abcd{atomic.REPLACED}").mkdir()
    assert atomic.find_replaced(here / "run").name == ".isoscope-run-0123abcd.old"
    assert atomic.find_replaced(here / "other") is None
    assert atomic.find_replaced(here / "no" / "such" / "run") is None


def test_a_system_that_cannot_swap_says_so(here, monkeypatch):
    monkeypatch.setattr(atomic.sys, "platform", "plan9")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSYS)):
        atomic.exchange(here, here)


def test_swapping_with_nothing_is_an_error(here):
    with pytest.raises(FileNotFoundError):
        atomic.exchange(filled(here / "new", "new"), here / "nothing")


def test_a_file_system_without_sync_is_no_error(here, monkeypatch):
    monkeypatch.setattr(atomic.os, "fsync", cannot)
    atomic.sync(here)


def test_a_failing_disk_is_one(here, monkeypatch):
    def broken(_):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(atomic.os, "fsync", broken)
    with pytest.raises(OSError, match="input/output"):
        atomic.sync(here)


def leave_behind(folder, *, seconds=3600):
    """Make a folder as a process that was killed leaves it."""
    folder.mkdir()
    (folder / "state").write_text("half")
    before = time.time() - seconds
    os.utime(folder, (before, before))
    return folder


def test_what_a_killed_process_left_is_removed_by_the_next_run(here):
    old = leave_behind(here / f".isoscope-{'0a' * 8}.partial")
    young = leave_behind(here / f".isoscope-{'0b' * 8}.partial", seconds=1)
    others = [leave_behind(here / name) for name in (".isoscope-mine.partial", "isoscope-data")]
    with atomic.staging(here / "run"):
        assert not old.exists()
        assert young.exists()
        assert all(each.exists() for each in others)


def test_what_another_process_holds_is_left_alone(here):
    with atomic.staging(here / "run") as folder:
        os.utime(folder, (0, 0))
        with atomic.staging(here / "other"):
            assert folder.exists()


def test_spare_folders_of_killed_processes_are_removed_too(here, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(here))
    old = leave_behind(here / ".isoscope-abcdefgh.spare")
    with atomic.SpareFolder() as held, atomic.SpareFolder() as other:
        assert not old.exists()
        assert sorted(map(str, here.iterdir())) == sorted((held, other))
    assert list(here.iterdir()) == []


def test_a_link_is_not_followed(here):
    target = leave_behind(here / "target")
    link = here / f".isoscope-{'0c' * 8}.partial"
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    with atomic.staging(here / "run"):
        assert target.exists()


def test_a_state_that_does_not_fit_on_the_disk_is_a_store_error(here, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    survey = Survey()
    survey.update(("rows", "all"), [Tally], ArrayBlock(np.eye(3)))
    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(StoreError, match="No space left on device") as caught:
        State(survey).digest()
    assert caught.value.slug == "store-write"


@pytest.mark.parametrize("mask", [0o002, 0o027, 0o077])
def test_modes_of_a_run_are_those_of_any_file(here, mask):
    before = os.umask(mask)
    try:
        isoscope.measure(np.eye(5) + 0.1, output=here / "run")
        (here / "plain").write_text("")
    finally:
        os.umask(before)
    run, plain = here / "run", (here / "plain").stat().st_mode & 0o777
    assert run.stat().st_mode & 0o777 == 0o777 & ~mask
    assert {each.stat().st_mode & 0o777 for each in run.iterdir()} == {plain}
