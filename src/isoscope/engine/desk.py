"""The desk of a stage: tasks that are given out to workers, and where their results go."""

import shutil
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import field, replace
from itertools import count
from pathlib import Path

from isoscope.dataclass import dataclass
from isoscope.engine import wire
from isoscope.engine.base import Job, Opens, Scratch, Stage
from isoscope.engine.failures import damaged_result
from isoscope.errors import EngineError
from isoscope.store.keepers import TASK, RecordKeeper, SummaryKeeper, node_of, unit_of

TASKS_PER_WORKER = 4  # at least, where there are units enough: the last ones even out
LARGEST = 6  # level of the largest part of the tree that one task takes


@dataclass
class Desk:
    """What the drivers of all workers of a stage share.

    Tasks are whole subtrees of the merge tree where possible. A unit that fails comes back
    as a task of its own, behind all others.
    """

    stage: Stage
    tasks: deque[wire.Assignment]
    scratch: Path
    error: BaseException | None = None
    stopped: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @classmethod
    def of(cls, job: Job, stage: Stage, workers: int, *, apart: str = "") -> "Desk":
        """Return a desk with all units that are to be done.

        With `apart`, every task has a folder of its own, whose name begins so: its results
        become part of the run when the driver moves them, and never change after that.
        """
        todo, keeper = stage.todo(), stage.keeper
        folder = keeper.folder or job.working.spare()
        before = None
        if stage.before is not None and todo:
            before = str(stage.before.file(job.working.spare, f"before-{stage.number}"))
        level = 0 if job.spec.keeps == "records" else task_level(len(todo), workers)
        first = wire.Assignment(
            stage.number, (), len(stage.units), str(folder), keeper.id, before, bool(apart)
        )
        names = (f"{TASK}{apart}-{number}" if apart else "" for number in count())
        tasks = deque(
            replace(first, units=part, name=name)
            for part, name in zip(align(todo, level), names, strict=False)
        )
        return cls(stage, tasks, job.working.scratch())

    def next(self) -> wire.Assignment | None:
        """Return a task that nobody has, or None."""
        with self._lock:
            return None if self.stopped or not self.tasks else self.tasks.popleft()

    def end(self, error: BaseException | None) -> None:
        """Stop giving out tasks; the first error is what the run ends with."""
        with self._lock:
            if self.error is None and not self.stopped:
                self.error = error
            self.stopped = True

    def fail(
        self, task: wire.Assignment, unit: int, error: BaseException, *, final: bool = False
    ) -> None:
        """Take back a unit that has failed; raises where the run cannot go on.

        With `final` it was tried often enough, by others.
        """
        with self._lock:
            if self.stage.fail(unit, error, final=final):
                self.put_back(task, [unit])

    def _lose(self, task: wire.Assignment, units: Sequence[int]) -> None:
        """Have units done again whose results were damaged while they waited."""
        with self._lock:
            self.put_back(task, [unit for unit in units if self.stage.lose(unit)])

    def put_back(self, task: wire.Assignment, units: Sequence[int]) -> None:
        """Have units of a task done later, each as a task of its own."""
        with self._lock:
            for unit in units:
                name = f"{task.name}-{unit}" if task.name else ""
                self.tasks.append(replace(task, units=(unit,), name=name))

    def take(self, task: wire.Assignment, message: object, worker: str = "") -> tuple[int, ...]:
        """Take in a message about a task; return the units that are off its hands."""
        if isinstance(message, wire.At):
            self.stage.at(message.unit, message.done, worker)
            return ()
        if isinstance(message, wire.Failed):
            if message.unit is None:
                raise message.unpack()
            self.fail(task, message.unit, message.unpack())
            return (message.unit,)
        with self._lock:
            if isinstance(message, wire.Remark):
                self.stage.tracker.note(message.text)
                return ()
            kept, damaged = self._keep(task, message)
            lost = self.stage.keeper.drain_lost()
        for unit in kept:
            Scratch(lambda: self.scratch, self.stage.number, unit).clear()
            self.stage.finish(unit)
        for unit in damaged:
            self.fail(task, unit, damaged_result(unit))
        self._lose(task, lost)
        return (*kept, *damaged)

    def _keep(
        self, task: wire.Assignment, message: object
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Keep a result; return the units that are done, and those whose result is damaged."""
        keeper, folder = self.stage.keeper, Path(task.folder) / task.name
        if isinstance(message, wire.Found):
            assert isinstance(keeper, RecordKeeper)
            keeper.add(message.unit, message.record)
            return (message.unit,), ()
        if isinstance(message, wire.Filed):
            assert isinstance(keeper, RecordKeeper)
            unit = (message.unit,)
            whole = keeper.has(*unit) or keeper.adopt(*unit, folder / message.name)
            return (unit, ()) if whole else ((), unit)
        assert isinstance(message, wire.Kept) and isinstance(keeper, SummaryKeeper)
        damaged: list[int] = []
        for node, name in message.nodes:
            covered = [unit for unit in message.units if node.covers(unit)]
            if any(map(keeper.has, covered)):  # never twice
                continue
            if not keeper.adopt(node, folder / name):
                damaged += covered
        return tuple(u for u in message.units if u not in damaged), tuple(damaged)

    def collect(self, task: wire.Assignment) -> tuple[int, ...]:
        """Keep what a worker that is gone has left of a task; return the units."""
        found: list[object] = []
        folder = Path(task.folder) / task.name
        for path in sorted(folder.iterdir()) if task.name and folder.is_dir() else ():
            if (unit := unit_of(path)) is not None:
                found.append(wire.Filed(unit, path.name))
            elif (node := node_of(path)) is not None:
                units = tuple(unit for unit in task.units if node.covers(unit))
                found.append(wire.Kept(((node, path.name),), units))
        done: list[int] = []
        with self._lock:
            for message in found:
                done += self._keep(task, message)[0]
            lost = self.stage.keeper.drain_lost()
        for unit in done:
            self.stage.finish(unit)
        self._lose(task, lost)
        return tuple(done)

    def close(self, task: wire.Assignment) -> None:
        """Remove the folder of a task, once all that was in it is kept."""
        if task.name:
            shutil.rmtree(Path(task.folder) / task.name, ignore_errors=True)


def refuse_script(spec: Opens, engine: str) -> None:
    """Refuse a spec that other processes cannot import."""
    if type(spec).__module__ == "__main__":
        raise EngineError(
            f"cannot hand a {type(spec).__name__} to the engine {engine}: it is defined in "
            "the script that runs",
            hint="only --engine=here takes it; move it to a module that can be imported",
            slug="engine-live",
        )


def worker_died(unit: int | None, how: str) -> EngineError:
    """Return the error of a unit whose worker ended without a message."""
    where = "before its first unit" if unit is None else f"at unit {unit}"
    return EngineError(
        f"a worker died {where} ({how})",
        hint="if memory ran out, take fewer --workers, a smaller --batch or a smaller --unit",
        slug="worker-died",
    )


def task_level(units: int, workers: int) -> int:
    """Return the level of the parts of the merge tree that make one task each.

    >>> [task_level(units, 1) for units in (1, 8, 16, 10_000)]
    [0, 1, 2, 6]
    """
    enough = units // (TASKS_PER_WORKER * workers)
    return min(max(enough.bit_length() - 1, 0), LARGEST)


def align(missing: Sequence[int], level: int) -> list[tuple[int, ...]]:
    """Return units in parts that are whole subtrees of the merge tree, where possible.

    >>> align(range(1, 11), 1)
    [(1,), (2, 3), (4, 5), (6, 7), (8, 9), (10,)]
    """
    parts: dict[int, list[int]] = {}
    for unit in missing:
        parts.setdefault(unit >> level, []).append(unit)
    return [tuple(part) for part in parts.values()]
