"""What engines share: jobs, stages, units; and the engine that works in this process."""

import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from isoscope.dataclass import dataclass
from isoscope.engine.allocator import trim
from isoscope.engine.failures import Failures, damaged_result, say
from isoscope.engine.plan import Plan
from isoscope.engine.tracker import Notify, Tracker
from isoscope.store.keepers import RecordKeeper, SummaryKeeper
from isoscope.store.state import State
from isoscope.store.working import Working

R_co = TypeVar("R_co", covariant=True)


class Scratch:
    """A folder for one unit, made on first use; a resumed run finds what the unit left."""

    def __init__(self, base: Callable[[], Path], stage: int, unit: int) -> None:
        self._base = base
        self._name = f"{stage + 1}-{unit}"
        self.used = False

    @property
    def path(self) -> Path:
        """The folder, made on first use."""
        place = self._base() / self._name
        place.mkdir(parents=True, exist_ok=True)
        self.used = True
        return place

    @property
    def kept(self) -> Path:
        """A folder for files that are part of the result; it is there until the run is whole.

        What is in it may be written again by a unit that is resumed, and is not cleared.
        """
        place = kept_files(self._base(), self._name)
        place.mkdir(parents=True, exist_ok=True)
        return place

    def clear(self) -> None:
        """Remove it, once the unit is kept."""
        shutil.rmtree(self._base() / self._name, ignore_errors=True)


def kept_files(scratch: Path, name: str) -> Path:
    """Return the folder of the files that a unit has kept; `name` is stage and unit."""
    return scratch / f"kept-{name}"


@dataclass(frozen=True)
class Ticks:
    """What a worker reports to while it runs a unit."""

    at: Callable[[int], None]  # how much of the unit is done; a retry may begin from less
    note: Callable[[str], None]  # something that readers of the run should know


class Worker(Protocol[R_co]):
    """A spec that is open in some process: what it names is loaded and ready."""

    def enter(self, plan: object, stage: int, before: State | None, /) -> None:
        """Turn to a stage; `before` is the merged state of the one before it."""

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> R_co:
        """Do one unit, knowing of no other; what is in `scratch` survives a kill."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A worker that can get ready for a unit while it runs another, such as by loading it."""

    def prepare(self, unit: object, /) -> None:
        """Begin with what the next unit needs, and return at once; it may never be run."""
        ...


def prepare_next(worker: Worker[object], units: Sequence[object], numbers: list[int]) -> None:
    """Tell a worker which unit comes after the first of these, where it wants to know."""
    if isinstance(worker, Prepares) and len(numbers) > 1:
        worker.prepare(units[numbers[1]])


class Opens(Protocol):
    """A spec, as engines see it."""

    keeps: ClassVar[str]  # "summaries" or "records"
    stays_open: ClassVar[bool]  # whether what is opened is used until the run ends

    def open(self, notify: Notify, live: Mapping[str, object] | None = None) -> Worker[object]:
        """Open what it names."""
        ...

    def decode_plan(self, content: bytes) -> Plan:
        """Return the plan that `encode` of a plan has written."""
        ...


@dataclass(frozen=True)
class Job:
    """What an engine works on."""

    spec: Opens
    plan: Plan
    worker: Worker[object]  # that made the plan, open in this process
    working: Working  # the folder of the run
    tell: Callable[[str], None] = lambda _: None  # takes remarks


@dataclass(frozen=True)
class Stage:
    """One stage of a plan: its units, where their results go, and what came before."""

    number: int
    units: Sequence[object]
    keeper: SummaryKeeper | RecordKeeper  # where results of units go
    tracker: Tracker
    failures: Failures
    size: Callable[[int], int | None]  # how much a unit counts in progress
    before: State | None  # the merged state of the stage before
    skipped: frozenset[int] = frozenset()  # units that are missing in a stage before

    def todo(self) -> list[int]:
        """Return the units that are to be done, in order."""
        return [unit for unit in self.keeper.missing() if unit not in self.skipped]

    def at(self, unit: int, done: int, worker: str = "") -> None:
        """Report how much of a unit is done, and by which worker."""
        self.tracker.at(self.number, unit, done, worker, self.size(unit))

    def finish(self, unit: int) -> None:
        """Report a unit that is done."""
        self.tracker.finish(self.number, unit, self.size(unit))

    def find(self, unit: int) -> None:
        """Report a unit that an earlier run has done."""
        self.tracker.find(self.number, unit, self.size(unit))

    def lose(self, unit: int) -> bool:
        """Return whether a unit that was kept and is damaged is to be done again."""
        self.tracker.lose(self.size(unit))
        return self.fail(unit, damaged_result(unit))

    def fail(self, unit: int, error: BaseException, *, final: bool = False) -> bool:
        """Return whether a unit that has failed is to be tried again, after the others.

        Raises where the run cannot go on. With `final` it was tried often enough.
        """
        label = getattr(self.units[unit], "label", "")
        any_done = len(self.keeper.missing()) < len(self.units)
        again = self.failures.fail(
            self.number, unit, label, error, any_done=any_done, final=final
        )
        self.tracker.fail(self.number, unit, again=again)
        what = "is tried again later" if again else "is given up"
        self.tracker.notify.tell(f"unit {unit} failed and {what}: {say(error)}")
        return again


# Does the units that are missing, and returns when all are kept or given up.
RunStage = Callable[[Stage], None]


class Engine(Protocol):
    """Where units run."""

    name: str
    takes_live: bool

    def start(self, job: Job) -> AbstractContextManager[RunStage]:
        """Begin with a job; what was opened for it is closed at the end."""
        ...


@runtime_checkable
class Follows(Protocol):
    """An engine whose processes have all been started with the same command."""

    @property
    def leads(self) -> bool:
        """Whether this process makes the plan and the results."""
        ...

    def leading(self) -> AbstractContextManager[Callable[[object], None]]:
        """Lead the others; yield what tells them the results. They end where this fails."""
        ...

    def follow(self) -> object:
        """Work for the leader; return its results, or leave where it could not do it."""
        ...


class Here:
    """Does units one after the other in this process: takes arrays, modules and streams."""

    name = "here"
    takes_live = True

    def start(self, job: Job) -> AbstractContextManager[RunStage]:
        """Begin with a job; the worker that made the plan does the units too."""
        return nullcontext(partial(_run_here, job))


def _run_here(job: Job, stage: Stage) -> None:
    """Do the units that are missing; what is done is written even if the run ends."""
    worker, keeper, tracker = job.worker, stage.keeper, stage.tracker
    todo = deque(stage.todo())
    worker.enter(job.plan, stage.number, stage.before)
    try:
        while todo:
            unit = todo.popleft()
            prepare_next(worker, stage.units, [unit, *islice(todo, 1)])
            scratch = Scratch(job.working.scratch, stage.number, unit)
            ticks = Ticks(partial(stage.at, unit), tracker.note)
            try:
                result = worker.run(stage.units[unit], scratch, ticks)
            except Exception as error:
                if stage.fail(unit, error):
                    todo.append(unit)
                continue
            keeper.add(unit, result)
            if scratch.used:
                keeper.flush()  # first on the disk, then out of the scratch
                scratch.clear()
            stage.finish(unit)
            for lost in keeper.drain_lost():
                if stage.lose(lost):
                    todo.append(lost)
            del result
            trim()
    except BaseException:
        keeper.flush()
        raise
