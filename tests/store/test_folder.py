"""Saving: whole or not at all, whatever happens in between."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from isoscope.errors import RunExistsError, StoreError
from isoscope.store import check_target, load, save
from isoscope.store.run import mark
from isoscope.store.schema import FILES

SOURCES = Path(__file__).parents[2] / "src"


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_run_folder_holds_four_files_and_nothing_is_left_beside_it(here, write):
    assert write(here / "run") == here / "run"
    assert sorted(contents(here)) == sorted(f"run/{name}" for name in FILES)


def test_run_json_tells_where_the_run_comes_from(here, write, origin):
    write(here / "run")
    record = json.loads((here / "run" / "run.json").read_text())
    assert record["schema"] == 1
    assert record["origin"] == origin().to_dict()
    assert record["left_out"] == ["twonn: needs at least 9 rows, got 6"]
    assert record["warnings"] == ["few rows"]
    assert record["command"] == sys.argv
    assert set(record["versions"]) == {"isoscope", "numpy", "python"}
    assert record["created"].endswith("+00:00")
    for name in ("state.safetensors", "readings.parquet"):
        assert record["files"][name]["blake2b"] == mark(here / "run" / name).blake2b


def test_the_config_is_yaml_as_given(here, write, config):
    write(here / "run")
    assert yaml.safe_load((here / "run" / "config.yaml").read_text()) == config


def test_folders_on_the_way_are_made(here, write):
    write(here / "a" / "b" / "run")
    assert (here / "a" / "b" / "run" / "run.json").is_file()


def test_the_same_run_has_the_same_numbers_byte_by_byte(here, write):
    write(here / "one")
    write(here / "two")
    for name in ("state.safetensors", "readings.parquet", "config.yaml"):
        assert (here / "one" / name).read_bytes() == (here / "two" / name).read_bytes()


def test_an_existing_run_is_not_replaced_unless_requested(here, write):
    write(here / "run", fill=1.0)
    before = contents(here)
    with pytest.raises(StoreError, match="expected a new folder") as caught:
        write(here / "run", fill=2.0)
    assert caught.value.slug == "store-exists"
    assert "--overwrite" in caught.value.hint
    assert contents(here) == before
    write(here / "run", fill=2.0, overwrite=True)
    assert load(here / "run").readings[0].value == 2.0
    assert sorted(contents(here)) == sorted(f"run/{name}" for name in FILES)


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_not_a_run_is_never_replaced(here, overwrite):
    (here / "file").write_text("mine")
    (here / "empty").mkdir()
    (here / "full").mkdir()
    (here / "full" / "thesis.tex").write_text("mine")
    before = contents(here)
    for name in ("file", "empty", "full"):
        with pytest.raises(StoreError) as caught:
            check_target(here / name, overwrite)
        assert caught.value.slug == ("store-foreign" if overwrite else "store-exists")
    assert contents(here) == before


def test_a_run_with_something_else_in_it_is_not_replaced_either(here, write):
    write(here / "run")
    (here / "run" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"also holds 'notes\.txt'"):
        check_target(here / "run", overwrite=True)


def test_a_damaged_run_can_be_replaced(here, write):
    write(here / "run")
    (here / "run" / "run.json").write_text("{")
    (here / "run" / "state.safetensors").unlink()
    write(here / "run", overwrite=True)
    assert load(here / "run").readings


def test_a_link_to_a_run_is_followed(here, write):
    write(here / "run")
    (here / "link").symlink_to(here / "run")
    write(here / "link", fill=2.0, overwrite=True)
    assert (here / "link").is_symlink()
    assert load(here / "run").readings[0].value == 2.0


@pytest.mark.parametrize("name", ["file/run", "file/deep/run", "\0", "loop/run"])
def test_where_nothing_can_be_written_it_is_reported_before_any_work(here, name):
    (here / "file").write_text("mine")
    (here / "loop").symlink_to(here / "loop")
    with pytest.raises(StoreError, match="cannot write a run to") as caught:
        check_target(f"{here}/{name}")
    assert caught.value.slug == "store-write"


def test_a_name_that_is_too_long_is_reported_before_any_work(here):
    with pytest.raises(StoreError, match="File name too long"):
        check_target(here / ("x" * 300))


def test_a_folder_that_may_not_be_written_to_is_reported_before_any_work(here, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(StoreError, match="may not be written to"):
        check_target(here / "run")


def test_a_survey_that_breaks_leaves_nothing(here, readings, origin, config):
    class Broken:
        def write(self, path):
            raise RuntimeError("bug")

    with pytest.raises(RuntimeError, match="bug"):
        save(here / "run", Broken(), readings(), origin(), config)
    assert list(here.iterdir()) == []


def test_a_run_that_appears_meanwhile_is_not_replaced(
    here, box, readings, origin, config, write
):
    class Slow(box):
        def to_state(self):
            write(here / "run", fill=9.0)
            return super().to_state()

    with pytest.raises(StoreError, match="expected a new folder"):
        save(here / "run", Slow(), readings(), origin(), config)
    assert load(here / "run").readings[0].value == 9.0
    assert [each.name for each in here.iterdir()] == ["run"]


def test_what_a_killed_process_left_behind_is_in_nobodys_way(here, write):
    left = here / ".isoscope-0123456789abcdef.partial"
    left.mkdir()
    (left / "state.safetensors").write_text("half")
    write(here / "run")
    write(here / "run", overwrite=True)
    assert load(here / "run").readings
    assert left.is_dir()  # it may belong to a process that is still at work


# One process forks a child per moment; each child kills itself at its moment, before or
# after a call that touches the disk, while it replaces run 1 by run 2 (or makes run 2).
KILLED_EVERYWHERE = """
import itertools, json, os, shutil, signal, sys
from pathlib import Path
from isoscope.store import atomic, load, run as saving
sys.path.insert(0, sys.argv[1])
from conftest import Box, read_as_library, saved_run
from isoscope.store.schema import STATE

here, replacing = Path(sys.argv[2]), sys.argv[3] == "replacing"

def killing(moment):
    moments = itertools.count()  # of all threads
    def pass_moment():
        if next(moments) == moment: os.kill(os.getpid(), signal.SIGKILL)
    def wrapped(call):
        def instead(*args, **options):
            pass_moment()
            result = call(*args, **options)
            pass_moment()
            return result
        return instead
    for place, name in [(os, "fsync"), (os, "mkdir"), (os, "rename"), (shutil, "rmtree"),
                        (os, "unlink"), (atomic, "exchange"), (Box, "write"),
                        (saving, "write_readings"), (Path, "write_bytes")]:
        setattr(place, name, wrapped(getattr(place, name)))

def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work(); os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True); os._exit(3)
    return os.waitpid(pid, 0)[1]

def replace(moment):
    killing(moment)
    saved_run(here / "run", fill=2.0, overwrite=replacing, size=50_000)

def check():
    run = load(here / "run")
    fill = run.readings[0].value
    meta, arrays = read_as_library(run.path / STATE)
    assert meta["fill"] == fill and (arrays["rows.sum"] == fill).all()
    assert saving.mark(run.path / STATE) == run.manifest.files[STATE]
    (here / "seen").write_text(str(fill))

saved_run(here / "warm"); load(here / "warm")  # imports once, not in every child
seen = []
for moment in range(1000):
    shutil.rmtree(here / "run", ignore_errors=True)
    if replacing:
        assert child(lambda: saved_run(here / "run", fill=1.0)) == 0
    killed = child(lambda: replace(moment))
    if replacing or (here / "run").exists():
        assert child(check) == 0, moment
        seen.append(float((here / "seen").read_text()))
    else:
        seen.append(None)
    if killed == 0:
        break
    assert killed == signal.SIGKILL, killed
# And what all the killed ones left behind disturbs nobody.
assert child(lambda: saved_run(here / "run", fill=3.0, overwrite=True)) == 0
print(json.dumps(seen))
"""


@pytest.mark.parametrize("case", ["replacing", pytest.param("new", marks=pytest.mark.slow)])
def test_killed_at_any_moment_the_old_run_or_the_new_one_is_whole(here, case):
    done = subprocess.run(
        [sys.executable, "-c", KILLED_EVERYWHERE, str(Path(__file__).parent), str(here), case],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    before = 1.0 if case == "replacing" else None
    turn = seen.index(2.0)
    assert seen == [before] * turn + [2.0] * (len(seen) - turn)
    assert turn > 12  # moments before it is in place
    assert len(seen) - turn >= 2  # and after


def in_a_small_world(code, *arguments):
    """Run code in a process of its own, whose limits end with it."""
    return subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        timeout=100,
        check=False,
    )


def test_a_file_that_may_not_grow_leaves_the_old_run(here, write):
    write(here / "run", fill=1.0)
    before = contents(here)
    code = (
        "import sys, resource; sys.path.insert(0, sys.argv[1]); from conftest import saved_run;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "saved_run(sys.argv[2], fill=2.0, overwrite=True, size=100_000)"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    done = in_a_small_world(code, here / "run")
    assert "cannot write a run to" in done.stderr
    assert "File too large" in done.stderr
    assert "what was there is untouched" in done.stderr
    assert contents(here) == before


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_the_old_run(small_disk, write):
    write(small_disk / "run", fill=1.0)
    before = contents(small_disk)
    with pytest.raises(StoreError, match="No space left on device") as caught:
        write(small_disk / "run", fill=2.0, overwrite=True, size=1_000_000)
    assert caught.value.slug == "store-write"
    assert "free some space" in caught.value.hint
    assert contents(small_disk) == before


def test_a_disk_that_fills_at_any_file_leaves_the_old_run(small_disk, write, read_as_library):
    write(small_disk / "run", fill=1.0)
    ballast = small_disk / "ballast"
    outcomes = []
    for free in range(0, 60_000, 4096):  # a page more each time
        room = os.statvfs(small_disk)
        ballast.write_bytes(bytes(max(room.f_bavail * room.f_frsize - free, 0)))
        value = load(small_disk / "run").readings[0].value
        try:
            write(small_disk / "run", fill=value + 1, overwrite=True, size=1000)
            outcomes.append(True)
        except StoreError as error:
            assert error.slug == "store-write"
            outcomes.append(False)
            assert load(small_disk / "run").readings[0].value == value
        _, arrays = read_as_library(small_disk / "run" / "state.safetensors")
        assert np.unique(arrays["rows.sum"]) == [load(small_disk / "run").readings[0].value]
        assert sorted(each.name for each in small_disk.iterdir()) == ["ballast", "run"]
        ballast.unlink()
    assert outcomes[0] is False
    assert outcomes[-1] is True


def test_a_run_that_exists_is_an_error_of_its_own(here, write):
    write(here / "run")
    with pytest.raises(RunExistsError, match="which exists"):
        write(here / "run")
