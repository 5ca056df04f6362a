"""The desk: aligned tasks, results that are checked, and nothing counted twice."""

from dataclasses import replace

import pytest
from counting import SITE, CountSpec, SumSpec, rows_of

from isoscope.engine import Notify, Tracker, wire
from isoscope.engine.base import Job, Stage
from isoscope.engine.desk import Desk, align, task_level
from isoscope.engine.failures import Failures
from isoscope.engine.task import OpenJob, check_seen, left_mark
from isoscope.errors import EngineError, StoreError
from isoscope.store.keepers import RecordKeeper, SummaryKeeper
from isoscope.store.working import Working

UNITS = 6


def test_tasks_are_aligned_and_large_enough():
    assert align([1, 2, 3, 4, 9], 1) == [(1,), (2, 3), (4,), (9,)]
    assert align([5, 6], 0) == [(5,), (6,)]
    assert [task_level(units, 2) for units in (1, 15, 16, 64, 10**6)] == [0, 0, 1, 3, 6]


@pytest.fixture
def desk(orders, tmp_path):
    """Return a function that makes a desk, and a worker that is open in this process."""

    def make(kind, *, apart="x"):
        spec = kind.of(orders=str(orders), units=UNITS)
        worker = spec.open(None)
        plan = worker.plan()
        folder = tmp_path / "run" / "stage-1"
        keeper = (RecordKeeper if kind is CountSpec else SummaryKeeper)(UNITS, folder, id="i")
        failures = Failures([UNITS], kept_in="run")
        stage = Stage(0, plan.stages[0], keeper, Tracker(Notify()), failures, lambda _: 1, None)
        working = Working(tmp_path / "run")
        found = Desk.of(Job(spec, plan, worker, working), stage, 1, apart=apart)
        return found, OpenJob(spec, plan, tmp_path / "scratch", worker)

    return make


def do(desk, job, task, *, take=True):
    messages = []
    job.run(task, messages.append, lambda: False)
    if take:
        for message in messages:
            desk.take(task, message)
    return messages


def finish(desk, job):
    while (task := desk.next()) is not None:
        do(desk, job, task)
        desk.close(task)


@pytest.mark.parametrize("kind", [SumSpec, CountSpec])
def test_results_are_moved_to_the_run_and_their_folder_is_removed(desk, kind):
    found, job = desk(kind)
    finish(found, job)
    keeper = found.stage.keeper
    assert keeper.missing() == []
    keeper.flush()
    assert {path.suffix for path in keeper.folder.iterdir()} <= {".safetensors", ".msgpack"}


@pytest.mark.parametrize("kind", [SumSpec, CountSpec])
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_result_that_was_damaged_is_computed_again(desk, kind, damage, log):
    found, job = desk(kind)
    first = found.next()
    messages = do(found, job, first, take=False)
    (path, *_) = (found.stage.keeper.folder / first.name).glob("[nu]*-*")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flipped" else content[:-1])
    for message in messages:
        found.take(first, message)
    assert set(first.units) <= set(found.stage.keeper.missing())
    finish(found, job)
    assert found.stage.keeper.missing() == []
    assert found.stage.failures.given_up == {}
    assert [line[2] for line in log("end")].count(f"1-{first.units[0]}") == 2


def test_a_result_that_is_always_damaged_is_given_up(desk, monkeypatch):
    found, job = desk(CountSpec)
    monkeypatch.setattr(
        RecordKeeper, "adopt", lambda self, unit, _: unit != 2 and self.add(unit, 0)
    )
    finish(found, job)
    (failure,) = found.stage.failures.given_up.values()
    assert failure.unit == 2 and "checksum" in failure.error
    assert isinstance(found.stage.failures.error(), StoreError)


@pytest.mark.parametrize("kind", [SumSpec, CountSpec])
def test_a_task_that_is_done_again_finds_what_was_written(desk, kind, log):
    found, job = desk(kind)
    task = found.next()
    do(found, job, task, take=False)  # the worker dies before anybody hears of it
    before = len(log("end"))
    do(found, job, task)
    assert len(log("end")) == before
    assert not set(task.units) & set(found.stage.keeper.missing())


@pytest.mark.parametrize("kind", [SumSpec, CountSpec])
def test_what_two_tries_hand_over_counts_once(desk, kind):
    found, job = desk(kind)
    task = found.next()
    messages = do(found, job, task, take=False)
    for message in messages * 2:
        found.take(task, message)
    finish(found, job)
    total = found.stage.keeper.total()
    if kind is CountSpec:
        assert [each["number"] for each in total] == list(range(UNITS))
    else:
        assert rows_of(total.survey_of(SITE[0])) == sum(range(2, UNITS + 2))


@pytest.mark.parametrize("kind", [SumSpec, CountSpec])
def test_what_a_lost_worker_has_left_is_collected(desk, kind):
    found, job = desk(kind)
    task = found.next()
    do(found, job, task, take=False)
    assert found.collect(task) == task.units
    assert not set(task.units) & set(found.stage.keeper.missing())


@pytest.mark.parametrize("kind", [SumSpec, CountSpec])
def test_the_next_driver_finds_what_nobody_took_over(desk, kind):
    found, job = desk(kind)
    task = found.next()
    do(found, job, task, take=False)
    keeper = found.stage.keeper
    (keeper.folder / task.name / "half.part").write_bytes(b"half")
    again = type(keeper)(UNITS, keeper.folder, id="i")
    assert not set(task.units) & set(again.missing())
    assert list(keeper.folder.glob("task-*")) == []


def test_a_result_that_is_damaged_while_it_waits_is_computed_again(desk):
    found, job = desk(SumSpec)
    (even, odd), keeper = (found.next(), found.next()), found.stage.keeper
    assert (even.units, odd.units) == ((0,), (1,))
    do(found, job, even)
    (path,) = keeper.folder.glob("node-*")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    do(found, job, odd)  # its other half
    assert keeper.has(1) and not keeper.has(0)
    assert found.tasks[-1].units == (0,)
    finish(found, job)
    total = keeper.total()
    assert rows_of(total.survey_of(SITE[0])) == sum(range(2, UNITS + 2))


def test_a_result_that_is_damaged_at_the_end_is_an_error(desk):
    found, job = desk(SumSpec)
    finish(found, job)
    keeper = found.stage.keeper
    keeper.flush()
    path = next(keeper.folder.glob("node-*"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="damaged on the disk") as caught:
        keeper.total()
    assert "the same command" in caught.value.hint


def test_results_of_another_run_do_not_count(desk, tmp_path):
    found, job = desk(SumSpec)
    task = found.next()
    messages = do(found, job, replace(task, id="other"), take=False)
    for message in messages:
        found.take(task, message)
    assert found.stage.keeper.missing() == list(range(UNITS))


def test_a_worker_that_does_not_see_the_folder_refuses_to_begin(tmp_path):
    with left_mark(Working(tmp_path)) as mark:
        check_seen(mark)
        with pytest.raises(EngineError, match="cannot see the run folder") as caught:
            check_seen(wire.Mark(mark.path, "another"))
    assert caught.value.slug == "engine-folder"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EngineError):
        check_seen(mark)
