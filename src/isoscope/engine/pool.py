"""The engine of several processes on this machine: each opens the spec for itself.

Nothing live crosses a process border: a worker gets the spec, the plan and numbers of
units, and hands back files or records. A worker that dies is replaced, and what it had not
handed over is done again.
"""

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import FileIO
from multiprocessing.connection import wait
from pathlib import Path

from isoscope.engine import wire
from isoscope.engine.base import Job, RunStage, Scratch, Stage
from isoscope.errors import EngineError
from isoscope.store.keepers import SummaryKeeper

TASKS_PER_WORKER = 4  # at least, where there are units enough: the last ones even out
LARGEST = 6  # level of the largest part of the tree that one task takes
DEATHS = 3  # of workers one after the other, at one task, before the run ends
GRACE = 2.0  # seconds that workers have to hand over what they did when a run is interrupted


@dataclass
class Pool:
    """Worker processes with pinned threads."""

    workers: int
    takes_live = False

    @contextmanager
    def start(self, job: Job) -> Generator[RunStage]:
        """Begin with a job; processes are started with the first stage that has work."""
        if type(job.spec).__module__ == "__main__":
            raise EngineError(
                f"cannot hand a {type(job.spec).__name__} to the engine pool: it is defined in "
                "the script that runs",
                hint="only --engine=here takes it; move it to a module that can be imported",
                slug="engine-live",
            )
        with closing(PoolSession(job, self.workers)) as session:
            yield session.run


class Process:
    """One worker process and the pipes to it."""

    def __init__(self, job: Job) -> None:
        pinned = {
            f"{name}_NUM_THREADS": str(job.plan.threads)
            for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
        }
        # -P: what lies in the folder of the user must not stand in for modules of Python.
        self.popen = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "isoscope.engine.process"),
                *map(str, (os.getpid(), *job.working.descriptors)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=job.working.descriptors,
            env={
                **os.environ,
                **pinned,
                "TOKENIZERS_PARALLELISM": "false",
                "PYTHONPATH": os.pathsep.join(
                    str(each) or str(Path.cwd()) for each in sys.path
                ),
            },
        )
        self.unit: int | None = None  # under way, as far as it has reported
        self._lock = threading.Lock()

    def send(self, message: wire.Open | wire.Assignment | None) -> None:
        """Send an order, or None to end; where it has died, the next `receive` reports it."""
        with self._lock, suppress(BrokenPipeError):
            assert self.popen.stdin is not None
            wire.send(self.popen.stdin, message)

    def receive(self) -> object:
        """Return its next message; EOFError where it has died."""
        out = self.popen.stdout
        assert isinstance(out, FileIO)  # it was opened without a buffer
        while not wait([out.fileno()], 1.0):
            # A process that the worker has started may hold its pipe open.
            if self.popen.poll() is not None and not wait([out.fileno()], 0):
                raise EOFError
        return wire.receive(out)

    def stop(self) -> None:
        """End it at once."""
        self.popen.kill()
        self.popen.wait()

    def close(self) -> None:
        """Close the pipes, once nobody reads from them."""
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


@dataclass
class PoolSession:
    """Processes that stay open from one stage to the next."""

    job: Job
    workers: int
    processes: dict[int, Process] = field(default_factory=dict[int, Process])
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, stage: Stage) -> None:
        """Hand out the units that are missing; return when all are kept."""
        keeper, job = stage.keeper, self.job
        missing = keeper.missing()
        if not missing:
            return
        folder = keeper.folder or job.working.spare()
        before = None
        if stage.before is not None:
            before = str(stage.before.file(job.working.spare, f"before-{stage.number}"))
        level = 0 if job.spec.keeps == "records" else task_level(len(missing), self.workers)
        tasks = deque(
            wire.Assignment(
                stage.number, part, len(stage.units), str(folder), keeper.id, before
            )
            for part in align(missing, level)
        )
        desk = Desk(stage, tasks, job.working.scratch())
        threads = [
            threading.Thread(target=self._drive, args=(number, desk), daemon=True)
            for number in range(min(self.workers, len(tasks)))
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            desk.fail(None)
            self._halt()
            patience = time.monotonic() + GRACE
            for thread in threads:
                thread.join(max(patience - time.monotonic(), 0.0))
            self._kill()
            for thread in threads:
                thread.join()
            raise
        if desk.error is not None:
            raise desk.error

    def close(self) -> None:
        """End all processes; afterwards none is started."""
        self._kill()
        for process in self.processes.values():
            process.close()
        self.processes.clear()

    def _kill(self) -> None:
        with self._lock:
            self._closed = True
            for process in self.processes.values():
                process.stop()

    def _halt(self) -> None:
        """Let all processes hand over what they have done, and end."""
        with self._lock:
            for process in self.processes.values():
                process.send(None)

    def _drive(self, number: int, desk: "Desk") -> None:
        """Give one process its tasks until there are no more."""
        try:
            while (task := desk.next()) is not None:
                self._do(number, task, desk)
        except BaseException as error:
            desk.fail(error)
            self._halt()

    def _do(self, number: int, task: wire.Assignment, desk: "Desk") -> None:
        """Have a task done, by one process after the other where they die."""
        left, deaths = list(task.units), 0
        while left and not desk.stopped:
            before = len(left)
            try:
                self._assign(number, task, left, desk)
            except EOFError:
                if desk.stopped:
                    return
                deaths = 1 if len(left) < before else deaths + 1
                code, where = self._remove(number)
                if deaths == DEATHS:
                    raise EngineError(
                        f"{DEATHS} workers died one after the other, {where} ({code})",
                        hint="what was done is kept and the same command resumes it; if memory "
                        "ran out, take fewer --workers or a smaller --unit",
                        slug="worker-died",
                    ) from None
                desk.stage.tracker.notify.tell(f"a worker died ({code}): starting another")

    def _assign(
        self, number: int, task: wire.Assignment, left: list[int], desk: "Desk"
    ) -> None:
        if number not in self.processes:
            with self._lock:
                if self._closed:
                    raise EOFError
                process = self.processes[number] = Process(self.job)
            process.send(wire.Open(self.job.spec, self.job.plan.encode(), str(desk.scratch)))
            self._until_ready(number, left, desk)
        self.processes[number].send(replace(task, units=tuple(left)))
        self._until_ready(number, left, desk)

    def _until_ready(self, number: int, left: list[int], desk: "Desk") -> None:
        process = self.processes[number]
        while not isinstance(message := process.receive(), wire.Ready):
            if isinstance(message, wire.Failed):
                raise message.unpack()
            if isinstance(message, wire.At):
                process.unit = message.unit
            for unit in desk.take(message):
                left.remove(unit)

    def _remove(self, number: int) -> tuple[str, str]:
        """Clear away a process that has died; return how, and where it was."""
        with self._lock:
            process = self.processes.pop(number)
        process.stop()
        process.close()
        code, unit = process.popen.returncode, process.unit
        where = "before their first unit" if unit is None else f"the last one at unit {unit}"
        return f"signal {-code}" if code < 0 else f"exit code {code}", where


@dataclass
class Desk:
    """What the threads of a stage share: tasks to give out, and where results go."""

    stage: Stage
    tasks: deque[wire.Assignment]
    scratch: Path
    error: BaseException | None = None
    stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> wire.Assignment | None:
        """Return a task that nobody has, or None."""
        with self._lock:
            return None if self.stopped or not self.tasks else self.tasks.popleft()

    def fail(self, error: BaseException | None) -> None:
        """Stop giving out tasks; the first error is what the run ends with."""
        with self._lock:
            if self.error is None and not self.stopped:
                self.error = error
            self.stopped = True

    def take(self, message: object) -> tuple[int, ...]:
        """Take in a message; return the units that are kept by it."""
        if isinstance(message, wire.At):
            self.stage.tracker.at(self.stage.number, message.unit, message.done)
            return ()
        with self._lock:
            if isinstance(message, wire.Remark):
                self.stage.tracker.note(message.text)
                return ()
            keeper = self.stage.keeper
            if isinstance(message, wire.Found):
                keeper.add(message.unit, message.record)
                kept: tuple[int, ...] = (message.unit,)
            else:
                assert isinstance(message, wire.Kept)
                assert isinstance(keeper, SummaryKeeper)
                for node, name in message.nodes:
                    keeper.adopt(node, name)
                kept = message.units
        for unit in kept:
            Scratch(lambda: self.scratch, self.stage.number, unit).clear()
            self.stage.finish(unit)
        return kept


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
