"""The engine of several processes on this machine: each opens the spec for itself.

Nothing live crosses a process border: a worker is given the spec, the plan and numbers of
units, and hands back files or records. A worker that dies is replaced, and what it had not
handed over is done again.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from isoscope.engine import wire
from isoscope.engine.base import Job, Tracker
from isoscope.errors import EngineError
from isoscope.store.summaries import State, SummaryKeeper

TASKS_PER_WORKER = 4  # at least, where there are units enough: the last ones even out
LARGEST = 6  # level of the largest part of the tree that one task takes
DEATHS = 3  # of workers at one task before the run is given up


class Pool:
    """Worker processes with pinned threads."""

    takes_live = False

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @contextmanager
    def start(self, job: Job) -> Generator["PoolSession"]:
        """Begin with a job; processes are started with the first stage that has work."""
        session = PoolSession(job, self.workers)
        try:
            yield session
        finally:
            session.close()


class Process:
    """One worker process and the pipes to it."""

    def __init__(self, job: Job, folder: Path) -> None:
        threads = str(job.threads)
        names = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
        pinned = {f"{name}_NUM_THREADS": threads for name in names}
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "isoscope.engine.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **pinned, "TOKENIZERS_PARALLELISM": "false"},
        )
        path = [each for each in sys.path if each]
        with suppress(BrokenPipeError):  # told by the first read
            wire.send(self._in, path)
            order = wire.Open(pickle.dumps(job.spec), job.encode(), str(folder), job.threads)
            wire.send(self._in, order)

    @property
    def _in(self) -> IO[bytes]:
        return cast(IO[bytes], self.popen.stdin)

    def ask(self, task: wire.Task | None) -> None:
        """Send a task, or None to end it."""
        with suppress(BrokenPipeError):
            wire.send(self._in, task)

    def hear(self) -> Any:
        """Return its next message; EOFError where it has died."""
        return wire.receive(cast(IO[bytes], self.popen.stdout))

    def stop(self) -> None:
        """End it at once."""
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class PoolSession:
    """Processes that stay open from one stage to the next."""

    def __init__(self, job: Job, workers: int) -> None:
        self.job = job
        self.workers = workers
        self.processes: dict[int, Process] = {}

    def run(
        self,
        stage: int,
        units: Sequence[Any],
        keeper: Any,
        tracker: Tracker,
        sizes: Callable[[int], int | None],
        before: State | None,
    ) -> None:
        """Hand out the units that are missing; return when all are kept."""
        missing = keeper.missing()
        if not missing:
            return
        folder = keeper.folder or self.job.spare()
        state = None if before is None else str(self._file(before, stage))
        tasks = deque(
            wire.Task(stage, part, len(units), str(folder), state)
            for part in aligned(missing, self.workers)
        )
        desk = Desk(tasks, keeper, tracker, sizes)
        threads = [
            threading.Thread(target=self._drive, args=(number, desk), daemon=True)
            for number in range(min(self.workers, len(tasks)))
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        except BaseException:
            desk.fail(None)
            self.close()
            raise
        if desk.error is not None:
            self.close()
            raise desk.error

    def close(self) -> None:
        """End all processes."""
        for process in list(self.processes.values()):
            process.stop()
        self.processes.clear()

    def _file(self, state: State, stage: int) -> Path:
        path = self.job.spare() / f"before-{stage}"
        if not path.exists():
            state.write(path)
        return path

    def _drive(self, number: int, desk: "Desk") -> None:
        """Give one process its tasks until there are no more."""
        try:
            while (task := desk.next()) is not None:
                deaths = 0
                left = list(task.units)
                while left:
                    try:
                        self._give(number, task, left, desk)
                    except EOFError:
                        if desk.stopped:
                            return
                        deaths += 1
                        code = self._bury(number)
                        if deaths == DEATHS:
                            raise _died(code, left[0]) from None
                        desk.tracker.notify.tell(f"a worker died ({code}): starting another")
        except BaseException as error:
            desk.fail(error)

    def _give(self, number: int, task: wire.Task, left: list[int], desk: "Desk") -> None:
        if number not in self.processes:
            self.processes[number] = Process(self.job, self.job.scratch())
            self._until_ready(number, task, left, desk)
        rest = wire.Task(task.stage, tuple(left), task.nodes, task.folder, task.before)
        self.processes[number].ask(rest)
        self._until_ready(number, task, left, desk)

    def _until_ready(self, number: int, task: wire.Task, left: list[int], desk: "Desk") -> None:
        while not isinstance(message := self.processes[number].hear(), wire.Ready):
            if isinstance(message, wire.Failed):
                raise message.error or RuntimeError(message.text)
            for unit in desk.take(task.stage, message):
                left.remove(unit)

    def _bury(self, number: int) -> str:
        process = self.processes.pop(number)
        process.stop()
        code = process.popen.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"


@dataclass
class Desk:
    """What the threads of a stage share: tasks to give out, and where results go."""

    tasks: deque[wire.Task]
    keeper: Any
    tracker: Tracker
    sizes: Callable[[int], int | None]
    error: BaseException | None = None
    stopped: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def next(self) -> wire.Task | None:
        """Return a task that nobody has, or None."""
        with self._lock:
            return None if self.stopped or not self.tasks else self.tasks.popleft()

    def fail(self, error: BaseException | None) -> None:
        """Stop giving out tasks; the first error is what the run ends with."""
        with self._lock:
            self.stopped = True
            if self.error is None:
                self.error = error

    def take(self, stage: int, message: Any) -> tuple[int, ...]:
        """Take in a message; return the units that are kept by it."""
        if isinstance(message, wire.At):
            self.tracker.at(stage, message.unit, message.done)
            return ()
        with self._lock:
            if isinstance(message, wire.Remark):
                self.tracker.note(message.text)
                return ()
            if isinstance(message, wire.Found):
                self.keeper.add(message.unit, message.record)
                kept: tuple[int, ...] = (message.unit,)
            else:
                assert isinstance(message, wire.Kept)
                keeper = cast(SummaryKeeper, self.keeper)
                for node, name in message.nodes:
                    keeper.adopt(node, name)
                kept = message.units
        for unit in kept:
            self.tracker.finish(stage, unit, self.sizes(unit))
        return kept


def aligned(missing: Sequence[int], workers: int) -> list[tuple[int, ...]]:
    """Return units in parts that are whole subtrees of the merge tree, where possible.

    >>> aligned(range(11), 1)
    [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10,)]
    """
    enough = len(missing) // (TASKS_PER_WORKER * workers)
    level = min(max(enough.bit_length() - 1, 0), LARGEST)
    parts: dict[int, list[int]] = {}
    for unit in missing:
        parts.setdefault(unit >> level, []).append(unit)
    return [tuple(part) for part in parts.values()]


def _died(code: str, unit: int) -> EngineError:
    return EngineError(
        f"{DEATHS} workers died one after the other at unit {unit} ({code})",
        hint="what was done is kept and the same command resumes it; if memory ran out, take "
        "fewer --workers or smaller units",
        slug="worker-died",
    )
