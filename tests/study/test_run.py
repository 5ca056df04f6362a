"""A spec is run: resumed, begun again, refused, and never counted by two drivers."""

# ruff: noqa: E402, F401, F811 - fixtures of the tests of engines

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

ENGINE_TESTS = Path(__file__).parents[1] / "engine"
if str(ENGINE_TESTS) not in sys.path:
    sys.path.insert(0, str(ENGINE_TESTS))

from counting import CountSpec, SumSpec
from driving import log, order, orders, start
from watching import eventually

import isoscope as iso
from isoscope.engine.failures import UnitsMissingError
from isoscope.errors import (
    EngineError,
    LockedError,
    ResumeError,
    RowError,
    RunExistsError,
    StoreError,
    UndefinedError,
)
from isoscope.store.keepers import SummaryKeeper
from isoscope.store.run import load, units_done
from isoscope.study import run as running
from isoscope.study.run import run
from isoscope.study.spec import Execution

SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture
def options(orders):
    return {"orders": str(orders), "units": 4, "stages": 2}


@pytest.fixture
def target(tmp_path):
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs" / "run"


def into(target, **more):
    return Execution(output=str(target), **more)


@pytest.fixture
def unfinished(options, target, order, orders):
    """Leave a run whose second stage stopped at its second unit."""
    failing = [order(f"fail@2-{unit}") for unit in (1, 2, 3)]
    with pytest.raises(UnitsMissingError):
        run(SumSpec.of(**options), into(target))
    for each in failing:
        each.unlink()
    (orders / "log").unlink()
    assert (target / "begun.json").exists() and not (target / "lock").exists()
    return target


def begun(log):
    return [where for _, _, where in log("begin")]


def test_an_unfinished_run_is_resumed(unfinished, options, log):
    run(SumSpec.of(**options), into(unfinished))
    assert begun(log) == ["2-1", "2-2", "2-3"]
    assert sorted(path.name for path in unfinished.parent.iterdir()) == ["run"]
    assert "lock" not in {path.name for path in unfinished.iterdir()}


def test_what_opens_an_unfinished_run_says_how_far_it_is(unfinished):
    assert units_done(unfinished) == (5, 8)  # all four of the first stage, one of the second
    with pytest.raises(StoreError, match="is not finished: 5 of 8 units are done") as caught:
        load(unfinished)
    assert caught.value.hint == "the command that began it resumes it"
    (unfinished / "plan.msgpack").write_bytes(b"\xc1")
    assert units_done(unfinished) is None
    with pytest.raises(StoreError, match=r"which has no run\.json"):
        load(unfinished)


def test_the_same_command_with_overwrite_resumes_too(unfinished, options, log):
    run(SumSpec.of(**options), into(unfinished, overwrite=True))
    assert begun(log) == ["2-1", "2-2", "2-3"]


def test_another_option_is_named_with_both_values(unfinished, options, log):
    with pytest.raises(ResumeError) as caught:
        run(SumSpec.of(**{**options, "units": 5}), into(unfinished))
    assert "--units 5" in caught.value.problem
    assert "begun with 4" in caught.value.problem
    assert begun(log) == []
    run(SumSpec.of(**options), into(unfinished))  # nothing was lost
    assert begun(log) == ["2-1", "2-2", "2-3"]


def test_another_command_is_named(unfinished, options):
    with pytest.raises(ResumeError, match="with count: it was begun with sum"):
        run(CountSpec.of(**options), into(unfinished))


def test_changed_content_is_named(unfinished, options, orders):
    (orders / "content").write_text("other rows")
    with pytest.raises(ResumeError, match="with another vectors") as caught:
        run(SumSpec.of(**options), into(unfinished))
    assert "some rows" in caught.value.problem and "other rows" in caught.value.problem


def test_overwrite_begins_again_with_another_option(unfinished, options, log):
    other = SumSpec.of(**{**options, "units": 3, "stages": 1})
    assert run(other, into(unfinished, overwrite=True)) == [9]
    assert begun(log) == ["1-0", "1-1", "1-2"]


@pytest.mark.parametrize("name", ["begun.json", "plan.msgpack"])
def test_a_damaged_file_is_reported_and_overwrite_begins_again(
    unfinished,
    options,
    log,
    name,
):
    (unfinished / name).write_bytes(b"{")
    with pytest.raises(StoreError, match=re.escape(name)) as caught:
        run(SumSpec.of(**options), into(unfinished))
    assert caught.value.slug == "store-damaged"
    assert list(unfinished.glob("stage-1/node-*"))  # what was done is still there
    run(SumSpec.of(**options), into(unfinished, overwrite=True))
    assert len(begun(log)) == 8


@pytest.mark.parametrize("name", ["units", "again"])
def test_an_unfinished_run_of_a_version_without_plans_is_refused(target, options, name):
    (target / name).mkdir(parents=True)
    (target / name / "node-0-0.safetensors").write_bytes(b"old")
    with pytest.raises(ResumeError, match="by another version") as caught:
        run(SumSpec.of(**options), into(target))
    assert caught.value.slug == "resume-other"
    assert (target / name / "node-0-0.safetensors").exists()
    assert run(SumSpec.of(**options), into(target, overwrite=True)) == [14, 14]


def test_units_of_an_earlier_revision_of_a_spec_do_not_count(unfinished, options, monkeypatch):
    monkeypatch.setattr(SumSpec, "revision", 1)
    with pytest.raises(ResumeError, match="by another version") as caught:
        run(SumSpec.of(**options), into(unfinished))
    assert caught.value.slug == "resume-other"
    assert run(SumSpec.of(**options), into(unfinished, overwrite=True)) == [14, 14]


def test_units_of_another_version_do_not_count(unfinished, options, monkeypatch):
    monkeypatch.setattr(running, "versions", lambda: {"isoscope": "99.0"})
    with pytest.raises(ResumeError, match="by another version"):
        run(SumSpec.of(**options), into(unfinished))


def test_a_second_stage_that_built_on_another_first_one_is_done_again(
    unfinished,
    options,
    log,
):
    (unfinished / "stage-2" / "after").write_text("digest of another state")
    run(SumSpec.of(**options), into(unfinished))
    assert begun(log) == ["2-0", "2-1", "2-2", "2-3"]


def test_a_first_stage_that_is_damaged_is_done_again(unfinished, options, log):
    (node,) = unfinished.glob("stage-1/node-*")
    node.write_bytes(node.read_bytes()[:-1])
    run(SumSpec.of(**options), into(unfinished))
    places = begun(log)
    assert places[:4] == ["1-0", "1-1", "1-2", "1-3"]
    # It gives the same state, so what was built on it still stands.
    assert places[4:] == ["2-1", "2-2", "2-3"]


@pytest.mark.parametrize("engine", ["here", "pool"])
def test_rows_that_cannot_be_measured_leave_nothing_to_resume(
    options,
    target,
    order,
    engine,
):
    order("bad_row@2-3")
    with pytest.raises(RowError):
        run(SumSpec.of(**options), into(target, engine=engine))
    assert list(target.parent.iterdir()) == []


def test_an_error_at_the_end_keeps_a_run_that_was_resumed(
    unfinished,
    options,
    order,
    log,
):
    order("fail@finish")
    with pytest.raises(UndefinedError):
        run(SumSpec.of(**options), into(unfinished))
    assert list(unfinished.glob("stage-2/node-*"))


def test_a_finished_run_is_refused_before_any_work(target, options, log):
    run(SumSpec.of(**options), into(target))
    opened = len(log("open"))
    with pytest.raises(RunExistsError):
        run(SumSpec.of(**options), into(target))
    assert len(log("open")) == opened
    assert run(SumSpec.of(**options), into(target, overwrite=True)) == [14, 14]


def test_a_second_driver_is_refused_and_takes_over_after_a_kill(
    target,
    options,
    order,
    log,
    start,
):
    waiting = order("wait@2-2")
    first = start("SumSpec", options, output=str(target))
    eventually(lambda: "2-2" in begun(log))
    with pytest.raises(LockedError) as caught:
        run(SumSpec.of(**options), into(target))
    assert re.search(rf"process {first.pid}, started \d{{4}}-\d\d-\d\dT", caught.value.problem)
    with pytest.raises(LockedError):  # whatever is asked for
        run(CountSpec.of(**options), into(target, overwrite=True))
    first.kill()
    first.communicate()
    waiting.unlink()
    assert run(SumSpec.of(**options), into(target)) == [14, 14]
    # The first stage was on the disk before the second began.
    assert begun(log).count("1-0") == 1 and begun(log).count("2-2") == 2


def test_of_two_drivers_that_race_for_a_new_folder_one_does_the_work(
    target,
    options,
    order,
    log,
    start,
):
    waiting = order("wait@1-0")
    drivers = [start("SumSpec", options, output=str(target)) for _ in range(2)]
    eventually(lambda: any(driver.poll() is not None for driver in drivers))
    waiting.unlink()
    errors = [driver.communicate()[1] for driver in drivers]
    assert sorted(driver.returncode for driver in drivers) == [0, 1]
    (winner,) = [driver for driver in drivers if driver.returncode == 0]
    assert f"process {winner.pid}, started" in "".join(errors)
    assert {pid for pid, *_ in log("begin")} == {winner.pid}
    assert (target / "run.json").exists()


def test_standard_input_is_refused_by_the_pool_whatever_is_behind_it(orders):
    for value in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        with pytest.raises(EngineError, match="cannot hand given"):
            run(CountSpec.of(orders=str(orders), given=value), Execution(engine="pool"))


@pytest.fixture
def vectors(tmp_path):
    """Return a folder of files, each of which is a unit."""
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(5):
        rows = np.random.default_rng(number).normal(size=(50, 4)) + 0.3
        np.savetxt(folder / f"part-{number}.csv", rows, delimiter=",")
    return folder


def test_what_does_not_fit_into_memory_gives_the_same_readings(vectors, monkeypatch, tmp_path):
    expected = iso.measure(vectors, all=True)
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    monkeypatch.setitem(SummaryKeeper.__init__.__kwdefaults__, "room", 1)
    found = iso.measure(vectors, all=True)
    assert [msgspec.to_builtins(each) for each in found] == [
        msgspec.to_builtins(each) for each in expected
    ]
    assert list(spare.iterdir()) == []


def isoscope(*words):
    return subprocess.run(
        [sys.executable, "-m", "isoscope", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )


def test_an_error_in_a_worker_is_one_clear_line_on_the_command_line(vectors, target):
    (vectors / "part-3.csv").write_text("1,2,3,4\n1,nan,3,4\n")
    pool = ("--engine", "pool", "--workers", "2", "-o", target)
    done = isoscope("measure", vectors, *pool)
    assert done.returncode == 2 and done.stdout == ""
    assert "part-3.csv" in done.stderr and "Traceback" not in done.stderr
    here = isoscope("measure", vectors, "-o", target)
    assert done.stderr == here.stderr
    done = isoscope("measure", vectors, "--skip-bad", *pool, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["n"] == 201


def test_vectors_that_changed_are_named(vectors, target, monkeypatch):
    fail = True
    add = SummaryKeeper.add

    def stop(self, unit, survey):
        if fail and unit == 3:
            raise KeyboardInterrupt
        add(self, unit, survey)

    monkeypatch.setattr(SummaryKeeper, "add", stop)
    with pytest.raises(KeyboardInterrupt):
        iso.measure(vectors, output=target)
    fail = False
    np.savetxt(vectors / "part-4.csv", np.ones((50, 4)), delimiter=",")
    with pytest.raises(ResumeError, match="with another vectors"):
        iso.measure(vectors, output=target)
    with pytest.raises(ResumeError, match=r"with seed 7: it was begun with 0"):
        iso.measure(vectors, output=target, seed=7)
    assert list(target.glob("stage-1/node-*"))


@pytest.mark.parametrize("fails", [False, True])
def test_the_garbage_collector_rests_while_a_worker_is_opened(options, monkeypatch, fails):
    seen = {}
    gc.unfreeze()  # what the suite has frozen before it forks
    opened, finish = CountSpec.open, running._do_stages

    def open_worker(*given):
        seen["opening"] = gc.isenabled()
        if fails:
            raise UndefinedError("cannot open", hint="", slug="no-spread")
        return opened(*given)

    def do_stages(*given):
        seen["at work"] = gc.isenabled(), gc.get_freeze_count() > 0
        return finish(*given)

    monkeypatch.setattr(CountSpec, "open", open_worker)
    monkeypatch.setattr(CountSpec, "stays_open", True)
    monkeypatch.setattr(running, "_do_stages", do_stages)
    if fails:
        with pytest.raises(UndefinedError):
            run(CountSpec(**options))
    else:
        run(CountSpec(**options))
        assert seen["at work"] == (True, True)
    assert seen["opening"] is False
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_garbage_collector_that_somebody_turned_off_stays_off(options):
    gc.disable()
    try:
        run(CountSpec(**options))
        assert not gc.isenabled()
    finally:
        gc.enable()
