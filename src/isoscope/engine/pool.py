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
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import field, replace
from io import FileIO
from multiprocessing.connection import wait
from pathlib import Path

from isoscope.dataclass import dataclass
from isoscope.engine import wire
from isoscope.engine.base import Job, RunStage, Stage
from isoscope.engine.desk import Desk, refuse_script, worker_died

DEATHS = 3  # of workers one after the other before they have done anything: the run ends
GRACE = 2.0  # seconds that workers have to hand over what they did when a run is interrupted


@dataclass
class Pool:
    """Worker processes with pinned threads."""

    workers: int
    name = "pool"
    takes_live = False

    @contextmanager
    def start(self, job: Job) -> Generator[RunStage]:
        """Begin with a job; processes are started with the first stage that has work."""
        refuse_script(job.spec, self.name)
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
        """Hand out the units that are missing; return when all are kept or given up."""
        desk = Desk.of(self.job, stage, self.workers)
        if not desk.tasks:
            return
        count = min(self.workers, len(desk.tasks))
        threads = [
            threading.Thread(target=self._drive, args=(number, desk), daemon=True)
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            desk.end(None)
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

    def _drive(self, number: int, desk: Desk) -> None:
        """Give one process its tasks until there are no more."""
        try:
            while (task := desk.next()) is not None:
                self._do(number, task, desk)
            desk.stage.tracker.leave(_name(number))
        except BaseException as error:
            desk.end(error)
            self._halt()

    def _do(self, number: int, task: wire.Assignment, desk: Desk) -> None:
        """Have a task done, by one process after the other where they die."""
        left, deaths = list(task.units), 0
        while left and not desk.stopped:
            try:
                self._assign(number, task, left, desk)
            except EOFError:
                if desk.stopped:
                    return
                how, unit = self._remove(number)
                desk.stage.tracker.leave(_name(number))
                if unit in left:
                    deaths = 0
                    left.remove(unit)
                    desk.fail(task, unit, worker_died(unit, how))
                    continue
                deaths += 1
                if deaths == DEATHS:
                    raise worker_died(None, how) from None
                desk.stage.tracker.notify.tell(f"a worker died ({how}): starting another")

    def _assign(self, number: int, task: wire.Assignment, left: list[int], desk: Desk) -> None:
        if number not in self.processes:
            with self._lock:
                if self._closed:
                    raise EOFError
                process = self.processes[number] = Process(self.job)
            process.send(wire.Open(self.job.spec, self.job.plan.encode(), str(desk.scratch)))
            self._until_ready(number, task, left, desk)
        self.processes[number].send(replace(task, units=tuple(left)))
        self._until_ready(number, task, left, desk)

    def _until_ready(
        self, number: int, task: wire.Assignment, left: list[int], desk: Desk
    ) -> None:
        process = self.processes[number]
        while not isinstance(message := process.receive(), wire.Ready):
            if isinstance(message, wire.Leaving):
                self._remove(number)
                return
            if isinstance(message, wire.At):
                process.unit = message.unit
            for unit in desk.take(task, message, _name(number)):
                left.remove(unit)

    def _remove(self, number: int) -> tuple[str, int | None]:
        """Clear away a process that has ended; return how, and at which unit it was."""
        with self._lock:
            process = self.processes.pop(number)
        process.stop()
        process.close()
        code = process.popen.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}", process.unit


def _name(number: int) -> str:
    """Return what a worker is called.

    >>> _name(0)
    'worker 1'
    """
    return f"worker {number + 1}"
