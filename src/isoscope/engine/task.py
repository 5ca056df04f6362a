"""What a worker does with a task: its units one after the other, and results as messages.

It is the same wherever the worker is: a process of the pool, of Ray, or a rank of torchrun.
"""

import os
import socket
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from isoscope.dataclass import dataclass
from isoscope.engine import wire
from isoscope.engine.allocator import trim
from isoscope.engine.base import Notify, Opens, Scratch, Ticks, Worker, prepare_next
from isoscope.engine.plan import Plan
from isoscope.errors import EngineError, IsoscopeError
from isoscope.store.atomic import write_whole, writing
from isoscope.store.keepers import RecordKeeper, SummaryKeeper
from isoscope.store.state import State
from isoscope.store.working import Working

OFTEN = 0.1  # seconds between two reports of a unit
Emit = Callable[[object], None]  # takes a message to the driver


@dataclass
class OpenJob:
    """A spec that is open in this process, and the plan it works on."""

    spec: Opens
    plan: Plan
    scratch: Path
    worker: Worker[object]
    entered: tuple[int, str | None] | None = None

    @classmethod
    def of(cls, order: wire.Open) -> "OpenJob":
        """Open what a driver names; an error where its files are not to be seen from here."""
        if order.mark is not None:
            check_seen(order.mark)
        plan = order.spec.decode_plan(order.plan)
        return cls(order.spec, plan, Path(order.scratch), order.spec.open(Notify()))

    def run(self, task: wire.Assignment, emit: Emit, stop: Callable[[], bool]) -> bool:
        """Do the units of a task; return whether this process is still in order.

        A unit that fails is reported, and the others are done. After an error that is not one
        of ours nobody knows what it left behind: the process should be replaced.
        """
        self._enter(task)
        keeper = self._keeper(task)
        sender, units = _Sender(emit, keeper), self.plan.stages[task.stage]
        done = [] if keeper is None else [unit for unit in task.units if keeper.has(unit)]
        sender.found(done)  # by an earlier try of this task
        todo = [unit for unit in task.units if unit not in done]
        for place, number in enumerate(todo):
            prepare_next(self.worker, units, todo[place : place + 2])
            emit(wire.At(number, 0))
            scratch = Scratch(lambda: self.scratch, task.stage, number)
            try:
                result = self.worker.run(units[number], scratch, _ticks(emit, number))
            except Exception as error:
                sender.hand_over()
                emit(wire.Failed.of(error, traceback.format_exc(), number))
                if not isinstance(error, IsoscopeError):
                    return False
            except BaseException:
                sender.hand_over()
                raise
            else:
                sender.take(number, result, at_once=scratch.used)
                del result
            trim()
            if stop():  # the driver ends this task, or is gone
                break
        sender.hand_over()
        return True

    def _enter(self, task: wire.Assignment) -> None:
        if self.entered != (task.stage, task.before):
            before = None if task.before is None else State(Path(task.before))
            self.worker.enter(self.plan, task.stage, before)
            self.entered = (task.stage, task.before)

    def _keeper(self, task: wire.Assignment) -> SummaryKeeper | RecordKeeper | None:
        """Return where results go: files, or None where records are sent as they are."""
        folder, fresh = Path(task.folder) / task.name, not task.name
        if self.spec.keeps == "records":
            return RecordKeeper(task.nodes, folder, id=task.id) if task.files else None
        return SummaryKeeper(task.nodes, folder, id=task.id, fresh=fresh)


@dataclass
class _Sender:
    """Sends records as they come; summaries are merged into files, as the keeper writes."""

    emit: Emit
    keeper: SummaryKeeper | RecordKeeper | None
    waiting: list[int] = field(default_factory=list[int])

    def found(self, units: list[int]) -> None:
        if isinstance(self.keeper, RecordKeeper):
            for number in units:
                self.take(number, self.keeper.records[number], at_once=True)
        else:
            self.waiting += units
            self.hand_over()

    def take(self, number: int, result: object, *, at_once: bool) -> None:
        if self.keeper is None:
            self.emit(wire.Found(number, result))
        elif isinstance(self.keeper, RecordKeeper):
            self.emit(wire.Filed(number, self.keeper.add(number, result)))
        else:
            self.keeper.add(number, result)
            self.waiting.append(number)
            if at_once or self.keeper.has_files:
                self.hand_over()

    def hand_over(self) -> None:
        if isinstance(self.keeper, SummaryKeeper) and self.waiting:
            nodes = tuple(self.keeper.hand_over())
            self.emit(wire.Kept(nodes, tuple(self.waiting)))
            self.waiting.clear()


def _ticks(emit: Emit, unit: int) -> Ticks:
    """Return what sends the reports of a unit as messages."""
    last = 0.0

    def at(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= OFTEN:
            last = now
            emit(wire.At(unit, done))

    return Ticks(at, lambda text: emit(wire.Remark(text)))


@contextmanager
def left_mark(working: Working) -> Generator[wire.Mark]:
    """Leave a file in the folder of a run by which workers elsewhere know it."""
    folder, key = working.folder or working.spare(), os.urandom(8).hex()
    path = folder / f"seen-{key}.part"  # as what a folder of units may hold is called
    with writing(folder):
        write_whole(path, key.encode())
    try:
        yield wire.Mark(str(path), key)
    finally:
        path.unlink(missing_ok=True)


def check_seen(mark: wire.Mark) -> None:
    """Refuse to work where the folder of the run is not the one of the driver."""
    path = Path(mark.path)
    with suppress(OSError):
        if path.read_text() == mark.key:
            return
    raise EngineError(
        f"a worker on {socket.gethostname()} cannot see the run folder {str(path.parent)!r}",
        hint="give --output a folder on a file system that all machines of the cluster share",
        slug="engine-folder",
    )
