"""The worker process of the pool: opens a spec once, then does tasks until it is to end."""

import os
import pickle
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO, Any

from isoscope.engine import wire
from isoscope.engine.base import Notify, Worker
from isoscope.engine.heap import trim
from isoscope.engine.scratch import scratch_of
from isoscope.store.summaries import State, SummaryKeeper
from isoscope.store.tree import Node

LOOK = 0.2  # seconds between two looks whether the driver is still there


def main() -> None:
    """Serve the driver over standard input and output."""
    driver = os.getppid()
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get between messages
    requests = os.fdopen(os.dup(0), "rb")
    try:
        serve(requests, out)
    except EOFError:  # the driver is gone or has closed the pipe
        return
    except BaseException as error:
        _fail(out, error)
        raise SystemExit(1) from None


def serve(requests: IO[bytes], out: IO[bytes]) -> None:
    """Open what the driver names and do its tasks."""
    path = wire.receive(requests)
    sys.path[:0] = [each for each in path if each not in sys.path]
    order: wire.Open = wire.receive(requests)
    spec = pickle.loads(order.spec)
    plan = spec.decode_plan(order.plan)
    worker: Worker[Any] = spec.open(Notify())
    wire.send(out, wire.Ready())
    entered: tuple[int, str | None] | None = None
    while True:
        task: wire.Task | None = wire.receive(requests)
        if task is None:
            return
        if entered != (task.stage, task.before):
            before = None if task.before is None else State(Path(task.before))
            worker.enter(plan, task.stage, before)
            entered = (task.stage, task.before)
        _do(task, plan.stages[task.stage], worker, spec.keeps, Path(order.folder), out)
        wire.send(out, wire.Ready())


def _do(
    task: wire.Task, units: Any, worker: Worker[Any], keeps: str, folder: Path, out: IO[bytes]
) -> None:
    """Do the units of a task; summaries are merged here and handed back as files."""
    keeper = SummaryKeeper(task.nodes, Path(task.folder), fresh=True)
    waiting: list[int] = []
    for number in task.units:
        ticks = _Ticks(out, number)
        with scratch_of(lambda: folder, task.stage, number) as scratch:
            result = worker.run(units[number], scratch, ticks)
            if keeps == "records":
                wire.send(out, wire.Found(number, result))
        if keeps == "records":
            continue
        keeper.add(number, result)
        waiting.append(number)
        if any(isinstance(each, Path) for each in keeper.tree.nodes.values()):
            _hand_over(keeper, waiting, out)
        del result
        trim()
    if waiting:
        _hand_over(keeper, waiting, out)


def _hand_over(keeper: SummaryKeeper, waiting: list[int], out: IO[bytes]) -> None:
    nodes: list[tuple[Node, str]] = keeper.hand_over()
    wire.send(out, wire.Kept(tuple(nodes), tuple(waiting)))
    waiting.clear()


class _Ticks:
    """Reports of a unit as messages; at most ten a second."""

    def __init__(self, out: IO[bytes], unit: int) -> None:
        self.out, self.unit, self.last = out, unit, 0.0

    def at(self, done: int) -> None:
        now = time.monotonic()
        if now - self.last >= 0.1:
            self.last = now
            wire.send(self.out, wire.At(self.unit, done))

    def note(self, text: str) -> None:
        wire.send(self.out, wire.Remark(text))


def _fail(out: IO[bytes], error: BaseException) -> None:
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
        wire.send(out, wire.Failed(error, text))
    except Exception:  # an error that cannot be sent is described
        wire.send(out, wire.Failed(None, text))


def _end_with(driver: int) -> None:
    """End this process when the driver has ended, even in the middle of a unit."""
    while os.getppid() == driver:
        time.sleep(LOOK)
    os._exit(1)


if __name__ == "__main__":
    main()
