"""The pool: nothing live crosses a border, and no death of a process changes a bit."""

import io
import json
import os
import signal
import threading

import pytest
from counting import CountSpec, CutSpec, SumSpec
from watching import children, eventually, lives

from isoscope.engine import Notify, pool
from isoscope.engine.failures import UnitsMissingError
from isoscope.errors import EngineError, LockedError, UndefinedError
from isoscope.study.run import run
from isoscope.study.spec import Execution

UNITS = 11


@pytest.fixture
def spec(orders):
    return SumSpec.of(orders=str(orders), units=UNITS, stages=2)


@pytest.fixture
def whole(spec, tmp_path, orders):
    """Return the bytes of a run in one process."""
    folder = tmp_path / "whole" / "run"
    folder.parent.mkdir()
    run(spec, Execution(output=str(folder)))
    (orders / "log").unlink()
    return (folder / "state.safetensors").read_bytes()


@pytest.fixture
def target(tmp_path):
    (tmp_path / "pool").mkdir()
    return tmp_path / "pool" / "run"


def pooled(target=None, workers=2, **more):
    output = None if target is None else str(target)
    return Execution(output=output, engine="pool", workers=workers, **more)


def bits(target):
    return (target / "state.safetensors").read_bytes()


@pytest.mark.parametrize(("units", "remarks"), [(1, ["1 unit for 2 workers"]), (2, [])])
def test_workers_that_have_nothing_to_do_are_remarked(orders, units, remarks, forked_pool):
    said = []
    run(CutSpec.of(orders=str(orders), units=units), pooled(), notify=Notify(say=said.append))
    assert [text.partition(":")[0] for text in said if "workers" in text] == remarks


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_any_number_of_workers_gives_the_bytes_of_one_process(
    spec, whole, target, log, workers
):
    assert run(spec, pooled(target, workers)) == [77, 77]
    assert bits(target) == whole
    assert sorted(path.name for path in target.parent.iterdir()) == ["run"]
    done = [where for _, _, where in log("end")]
    assert sorted(done) == sorted(f"{s}-{n}" for s in (1, 2) for n in range(UNITS))
    assert os.getpid() not in {pid for pid, *_ in log("end")}
    assert max(int(where[0]) for where in done[:UNITS]) == 1  # the barrier between stages


def test_without_a_folder_it_gives_the_same_and_leaves_nothing(
    spec, tmp_path, monkeypatch, forked_pool
):
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    assert run(spec, pooled()) == run(spec)
    assert list(spare.iterdir()) == []


@pytest.mark.parametrize("where", ["1-4", "2-9"])
def test_a_worker_that_is_killed_in_a_unit_is_replaced(
    spec, whole, target, order, where, forked_pool
):
    order(f"once-die@{where}")
    said = []
    run(spec, pooled(target), notify=Notify(say=said.append))
    assert bits(target) == whole
    (text,) = said
    assert text == (
        f"unit {where[2:]} failed and is tried again later: "
        f"a worker died at unit {where[2:]} (signal 9)"
    )


def test_a_worker_that_dies_now_and_then_is_replaced_each_time(
    spec, whole, target, order, forked_pool
):
    for unit in range(0, UNITS, 2):
        order(f"once-die@1-{unit}")
    run(spec, pooled(target, 1))
    assert bits(target) == whole


def test_a_unit_that_always_kills_its_worker_is_given_up_and_the_others_are_kept(
    spec, whole, target, order, log, forked_pool
):
    deadly = order("die@1-6")
    with pytest.raises(EngineError, match=r"a worker died at unit 6 \(signal 9") as caught:
        run(spec, pooled(target))
    assert caught.value.slug == "worker-died" and "unit 6 is missing" in caught.value.hint
    assert [line[2] for line in log("begin")].count("1-6") == 3
    done = [where for _, _, where in log("end")]
    assert {where[0] for where in done} == {"1"}  # no second stage on half of the first
    deadly.unlink()
    run(spec, pooled(target))
    assert bits(target) == whole
    again = [where for _, _, where in log("end")][len(done) :]
    assert again[0] == "1-6"
    assert set(done) & set(again) == set()


def test_workers_that_die_while_they_open_end_the_run(spec, target, order, forked_pool):
    order("die@open")
    worker = order("die@open").rename(order("x").with_name("later"))
    real = pool.Process.__init__

    def deadly(self, job):
        worker.exists() and worker.rename(worker.with_name("die@open"))
        real(self, job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool.Process, "__init__", deadly)
        with pytest.raises(EngineError, match="before its first unit"):
            run(spec, pooled(target, 1))
    assert not target.exists()


def test_an_error_of_ours_is_raised_here_and_what_was_done_is_kept(
    spec, whole, target, order, log, forked_pool
):
    failing = order("fail@1-7")
    with pytest.raises(UndefinedError, match="there is no such number") as caught:
        run(spec, pooled(target))
    assert caught.value.hint.startswith("take another; unit 7 is missing")
    done = [where for _, _, where in log("end")]
    failing.unlink()
    run(spec, pooled(target))
    assert bits(target) == whole
    assert len(log("end")) == 2 * UNITS  # nothing was done twice
    assert done


def test_nothing_is_left_when_all_units_fail(spec, target, order, forked_pool):
    for unit in range(UNITS):
        order(f"fail@1-{unit}")
    with pytest.raises(UnitsMissingError, match="10 units failed and none was done"):
        run(spec, pooled(target))
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("fault", "kind"), [("bug", ZeroDivisionError), ("trouble", RuntimeError)]
)
def test_a_bug_in_a_worker_is_raised_with_its_traceback(spec, order, fault, kind, forked_pool):
    order(f"{fault}@1-3")
    with pytest.raises(kind) as caught:
        run(spec, pooled())
    assert "in obey" in caught.value.__notes__[0]


def test_no_process_outlives_the_run(spec, order, log):
    run(spec, pooled())
    order("fail@1-9")
    with pytest.raises(UndefinedError):
        run(spec, pooled())
    workers = {pid for pid, *_ in log()} - {os.getpid()}
    assert len(workers) >= 3
    assert not any(map(lives, workers))


def test_no_descriptor_outlives_the_run(spec, target):
    run(spec, pooled())
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    run(spec, pooled(target))
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208


@pytest.mark.parametrize("kind", [SumSpec, CountSpec])
def test_what_a_worker_prints_does_not_break_messages(orders, order, kind, capfd):
    for unit in range(4):
        order(f"noise@1-{unit}")
    spec = kind.of(orders=str(orders))
    found = run(spec, pooled())
    for path in orders.glob("noise*"):
        path.unlink()
    assert found == run(spec)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("a library prints") == err.count("a process that a library starts") == 4


def test_a_note_of_a_worker_is_recorded_in_the_run(spec, target, order, forked_pool):
    order("note@1-3", "memory ran out: batches are now cut in 2")
    order("note@2-3", "memory ran out: batches are now cut in 2")
    said = []
    run(spec, pooled(target), notify=Notify(say=said.append))
    assert set(said) == {"memory ran out: batches are now cut in 2"}
    manifest = json.loads((target / "run.json").read_text())
    assert manifest["left_out"] == ["memory ran out: batches are now cut in 2"]


def test_an_object_or_a_stream_is_refused(orders, tmp_path):
    spec = CountSpec.of(orders=str(orders))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for value in ("-", "/dev/stdin", str(fifo)):
        with pytest.raises(EngineError, match="cannot hand given to the engine pool") as caught:
            run(CountSpec.of(orders=str(orders), given=value), pooled())
        assert caught.value.slug == "engine-live"
    with pytest.raises(EngineError, match="an object in memory") as caught:
        run(spec, pooled(), live={"given": [1, 2]})
    assert "--engine=here" in caught.value.hint
    run(CountSpec.of(orders=str(orders), given="no-such-file"), pooled())


def test_a_spec_of_the_script_itself_is_refused(orders, monkeypatch):
    monkeypatch.setattr(CountSpec, "__module__", "__main__")
    with pytest.raises(EngineError, match="defined in the script") as caught:
        run(CountSpec.of(orders=str(orders)), pooled())
    assert caught.value.slug == "engine-live"


def test_a_module_in_the_current_folder_does_not_stand_in_for_one_of_python(
    spec, tmp_path, monkeypatch
):
    (tmp_path / "pickle.py").write_text("raise SystemExit('not the pickle you know')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [each for each in __import__("sys").path if each])
    assert run(spec, pooled()) == [77, 77]


def test_an_interrupt_lets_workers_hand_over_and_ends_them(
    orders, target, order, log, start, spec, whole
):
    order("wait@1-4")
    options = {"orders": str(orders), "units": UNITS, "stages": 2}
    driver = start("SumSpec", options, output=str(target), engine="pool", workers=2)
    eventually(lambda: len(log("end")) == UNITS - 1)  # one waits, the other went on
    workers = children(driver.pid)
    assert len(workers) == 2
    driver.send_signal(signal.SIGINT)
    _, error = driver.communicate()
    assert "KeyboardInterrupt" in error
    assert not any(map(lives, workers))
    order("wait@1-4").unlink()
    before = len(log("end"))
    run(spec, pooled(target))
    assert bits(target) == whole
    again = [where for _, _, where in log("end")][before:]
    assert [where for where in again if where.startswith("1-")] == ["1-4"]


def test_a_killed_driver_takes_its_workers_with_it_and_another_takes_over(
    orders, target, order, log, start, spec, whole
):
    order("wait@1-4")
    options = {"orders": str(orders), "units": UNITS, "stages": 2}
    driver = start("SumSpec", options, output=str(target), engine="pool", workers=2)
    eventually(lambda: ("begin", "1-4") in [line[1:] for line in log()])
    workers = children(driver.pid)
    assert len(workers) == 2 and all(map(lives, workers))
    os.kill(workers[0], signal.SIGSTOP)  # it cannot notice that its driver is gone
    driver.kill()
    driver.wait()
    try:
        with pytest.raises(LockedError):  # while there is one that could still write
            run(spec, pooled(target))
    finally:
        os.kill(workers[0], signal.SIGCONT)
    eventually(lambda: not any(map(lives, workers)))  # in the middle of a unit
    order("wait@1-4").unlink()
    run(spec, pooled(target))
    assert bits(target) == whole


def test_scratch_survives_the_death_of_driver_and_worker(orders, target, order, log, start):
    order("learn@1-2")
    options = {"orders": str(orders), "units": 4}
    where = {"output": str(target), "engine": "pool", "workers": 2}
    driver = start("CountSpec", options, **where)
    ((worker, *_),) = eventually(lambda: log("left"))
    os.kill(worker, signal.SIGKILL)  # the next worker finds what this one left
    eventually(lambda: log("found"))
    driver.communicate()
    assert driver.returncode == 0
    assert not target.exists()  # records of this spec are not saved

    (orders / "log").unlink()
    order("fail@1-3")
    driver = start("CountSpec", options, **where)
    eventually(lambda: log("left"))
    driver.kill()
    driver.communicate()
    assert (target / "scratch" / "1-2" / "checkpoint").exists()
    with pytest.raises(UndefinedError):
        run(CountSpec.of(**options), pooled(target, 1))
    assert log("found")
    assert not (target / "scratch" / "1-2").exists()


def test_processes_are_started_from_a_thread_as_well(spec):
    found = []
    thread = threading.Thread(target=lambda: found.append(run(spec, pooled())))
    thread.start()
    thread.join()
    assert found == [[77, 77]]


def test_a_pipe_that_is_held_open_by_others_does_not_hide_a_death(monkeypatch):
    class Dead:
        stdout = io.FileIO(os.pipe()[0])

        def poll(self):
            return -9

    process = object.__new__(pool.Process)
    process.popen = Dead()
    monkeypatch.setattr(pool, "wait", lambda *_: [])
    with pytest.raises(EOFError):
        process.receive()
    Dead.stdout.close()
