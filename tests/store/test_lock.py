"""One driver per run folder, by real processes."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from isoscope.errors import LockedError
from isoscope.store import working
from isoscope.store.working import Lock

HOLD = """
import sys
from pathlib import Path
from isoscope.errors import LockedError
from isoscope.store.working import Lock
mine = Lock(Path(sys.argv[1]))
for line in sys.stdin:
    if line == "acquire\\n":
        try:
            mine.acquire()
            print("has it", flush=True)
        except LockedError as error:
            print("refused", error.problem, flush=True)
    else:
        mine.release()
        print("released", flush=True)
"""


class Driver:
    """Another process that takes and releases a lock on demand."""

    def __init__(self, folder, **more):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            **more,
        )

    def tell(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, word):
        self.tell(word)
        return self.answer()


@pytest.fixture
def drivers(tmp_path):
    started = []

    def start(folder=tmp_path / "run", **more):
        started.append(Driver(folder, **more))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def test_a_second_driver_is_refused_with_id_and_start_of_the_first(drivers, tmp_path):
    first = drivers()
    assert first.ask("acquire") == "has it"
    with pytest.raises(LockedError) as caught:
        Lock(tmp_path / "run").acquire()
    found = re.search(r"process (\d+), started (\S+), is at work", caught.value.problem)
    holder = json.loads((tmp_path / "run" / "lock").read_text())
    assert int(found[1]) == first.process.pid == holder["pid"]
    assert found[2] == holder["started"]
    assert caught.value.slug == "run-locked"


def test_it_is_free_after_a_release_and_leaves_nothing(drivers, tmp_path):
    first = drivers()
    first.ask("acquire")
    assert first.ask("release") == "released"
    mine = Lock(tmp_path / "run")
    mine.acquire()
    mine.release()
    mine.release()
    assert list((tmp_path / "run").iterdir()) == []


def test_another_takes_over_after_a_kill(drivers, tmp_path):
    first = drivers()
    first.ask("acquire")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    mine = Lock(tmp_path / "run")
    mine.acquire()
    assert json.loads((tmp_path / "run" / "lock").read_text())["pid"] == os.getpid()
    mine.release()


def test_the_same_process_cannot_have_it_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(working, "PATIENCE", 0.0)
    mine = Lock(tmp_path)
    mine.acquire()
    with pytest.raises(LockedError, match=f"process {os.getpid()}"):
        Lock(tmp_path).acquire()
    mine.release()


def test_of_drivers_that_race_for_a_new_folder_exactly_one_wins(drivers, tmp_path):
    many = [drivers() for _ in range(3)]
    for number in range(2):
        for each in many:
            each.tell("acquire")
        answers = [each.answer() for each in many]
        winners = [each for each, got in zip(many, answers, strict=True) if got == "has it"]
        assert len(winners) == 1, (number, answers)
        pid = str(winners[0].process.pid)
        assert all(pid in answer for answer in answers if answer != "has it")
        winners[0].ask("release")
        (tmp_path / "run").rmdir()


def test_whoever_waits_for_a_folder_that_is_removed_makes_a_new_one(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    first = Lock(folder)
    first.acquire()

    def finish(_):
        """The first driver ends, and removes its folder, while the second waits."""
        if first.descriptor is not None:
            first.release()
            folder.rmdir()

    monkeypatch.setattr(working, "sleep", finish)
    second = Lock(folder)
    second.acquire()
    assert (folder / "lock").exists()
    second.release()


def test_whoever_waits_for_a_folder_that_is_replaced_locks_what_is_there_now(
    tmp_path, monkeypatch
):
    folder = tmp_path / "run"
    first = Lock(folder)
    first.acquire()

    def finish(_):
        if folder.exists() and not (folder / "run.json").exists():
            folder.rename(tmp_path / "old")
            folder.mkdir()
            (folder / "run.json").write_text("{}")
            first.release()

    monkeypatch.setattr(working, "sleep", finish)
    second = Lock(folder)
    second.acquire()
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "run.json"]
    first.release()  # it is not the first one's file any more
    assert (folder / "lock").exists()
    second.release()
    assert not (folder / "lock").exists()


def test_a_process_that_inherited_it_holds_it_too(drivers, tmp_path, monkeypatch):
    monkeypatch.setattr(working, "PATIENCE", 0.0)
    mine = Lock(tmp_path / "run")
    mine.acquire()
    worker = drivers(tmp_path / "other", pass_fds=(mine.descriptor,))
    assert worker.ask("release") == "released"  # it is up
    os.close(mine.descriptor)  # as if this process had been killed
    mine.descriptor = None
    with pytest.raises(LockedError):
        Lock(tmp_path / "run").acquire()
    worker.process.kill()
    worker.process.wait()
    Lock(tmp_path / "run").acquire()


@pytest.mark.parametrize("alive", [True, False])
def test_without_locks_of_the_system_the_process_id_decides(
    tmp_path, monkeypatch, drivers, alive
):
    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    other = drivers().process
    if not alive:
        other.kill()
        other.wait()
    holder = {"pid": other.pid, "started": "then", "host": os.uname().nodename}
    Path(tmp_path, "lock").write_text(json.dumps(holder))
    monkeypatch.setattr(working, "PATIENCE", 0.0)
    monkeypatch.setattr(working.fcntl, "flock", unsupported)
    mine = Lock(tmp_path)
    if alive:
        with pytest.raises(LockedError, match="started then"):
            mine.acquire()
    else:
        mine.acquire()


def test_no_descriptor_is_left_open_by_a_refusal(tmp_path, monkeypatch):
    monkeypatch.setattr(working, "PATIENCE", 0.0)
    mine = Lock(tmp_path)
    mine.acquire()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        with pytest.raises(LockedError):
            Lock(tmp_path).acquire()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    mine.release()
