"""The worker process of the pool: opens a spec once, then does tasks until it is to end."""

import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO

from isoscope.engine import wire
from isoscope.engine.allocator import trim
from isoscope.engine.base import Notify, Scratch, Ticks, Worker, prepare_next
from isoscope.store.keepers import SummaryKeeper
from isoscope.store.state import State

LOOK = 0.2  # seconds between two looks whether the driver is still there
OFTEN = 0.1  # seconds between two reports of a unit


def main(driver: int, descriptors: list[int]) -> None:
    """Serve the driver over standard input and output.

    The descriptors are the lock of the run, held as long as this process lives; processes
    that libraries start do not get them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what an interrupt ends
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    for each in descriptors:
        os.set_inheritable(each, False)
    requests = FileIO(os.dup(0), "rb")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what libraries print must not get between messages
    try:
        serve(requests, out)
    except (EOFError, BrokenPipeError):  # the driver is gone or has closed the pipe
        os._exit(1)
    except BaseException as error:
        with suppress(BrokenPipeError):
            wire.send(out, wire.Failed.of(error, traceback.format_exc()))
        os._exit(1)


def serve(requests: FileIO, out: IO[bytes]) -> None:
    """Open what the driver names and do its tasks."""
    order = wire.receive(requests)
    assert isinstance(order, wire.Open)
    plan = order.spec.decode_plan(order.plan)
    worker: Worker[object] = order.spec.open(Notify())
    wire.send(out, wire.Ready())
    base = Path(order.scratch)
    entered: tuple[int, str | None] | None = None
    while (task := wire.receive(requests)) is not None:
        assert isinstance(task, wire.Assignment)
        if entered != (task.stage, task.before):
            before = None if task.before is None else State(Path(task.before))
            worker.enter(plan, task.stage, before)
            entered = (task.stage, task.before)
        keeper = None
        if order.spec.keeps != "records":
            keeper = SummaryKeeper(task.nodes, Path(task.folder), id=task.id, fresh=True)
        sender = _Sender(out, keeper)
        units = plan.stages[task.stage]
        try:
            for place, number in enumerate(task.units):
                prepare_next(worker, units, list(task.units[place : place + 2]))
                wire.send(out, wire.At(number, 0))
                scratch = Scratch(lambda: base, task.stage, number)
                result = worker.run(units[number], scratch, _ticks(out, number))
                sender.take(number, result, at_once=scratch.used)
                del result
                trim()
                if wait([requests.fileno()], 0):  # the driver ends this task, or is gone
                    break
        finally:
            sender.hand_over()
        wire.send(out, wire.Ready())


@dataclass
class _Sender:
    """Sends records as they come; summaries are merged into files, as the keeper writes."""

    out: IO[bytes]
    keeper: SummaryKeeper | None  # None where units give records
    waiting: list[int] = field(default_factory=list[int])

    def take(self, number: int, result: object, *, at_once: bool) -> None:
        if self.keeper is None:
            wire.send(self.out, wire.Found(number, result))
            return
        self.keeper.add(number, result)
        self.waiting.append(number)
        if at_once or self.keeper.has_files:
            self.hand_over()

    def hand_over(self) -> None:
        if self.keeper is not None and self.waiting:
            nodes = tuple(self.keeper.hand_over())
            wire.send(self.out, wire.Kept(nodes, tuple(self.waiting)))
            self.waiting.clear()


def _ticks(out: IO[bytes], unit: int) -> Ticks:
    """Return what sends the reports of a unit as messages."""
    last = 0.0

    def at(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= OFTEN:
            last = now
            wire.send(out, wire.At(unit, done))

    return Ticks(at, lambda text: wire.send(out, wire.Remark(text)))


def _end_with(driver: int) -> None:
    """End this process when the driver has ended, even in the middle of a unit."""
    while os.getppid() == driver:
        time.sleep(LOOK)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(each) for each in sys.argv[2:]])
