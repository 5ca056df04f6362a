"""What engines share: jobs, stages, progress, and the engine that works in this process."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import RLock
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from isoscope.engine.allocator import trim
from isoscope.engine.plan import Plan
from isoscope.errors import ConfigError
from isoscope.registry import check_names
from isoscope.store.keepers import RecordKeeper, SummaryKeeper
from isoscope.store.state import State
from isoscope.store.working import Working

R_co = TypeVar("R_co", covariant=True)
ENGINES = ("here", "pool")


@dataclass(frozen=True)
class Notify:
    """Callbacks for progress, and for remarks about the work."""

    progress: Callable[[int, int | None], None] | None = None
    say: Callable[[str], None] | None = None

    def tell(self, text: str) -> None:
        """Pass on a remark, where there is a callback for it."""
        if self.say is not None:
            self.say(text)


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


@dataclass
class Tracker:
    """Progress over all units of a run: it never goes back, whoever reports."""

    notify: Notify
    total: int | None = None
    note: Callable[[str], None] = lambda _: None
    _done: int = 0
    _under_way: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _shown: int = -1
    _lock: RLock = field(default_factory=RLock)

    def at(self, stage: int, unit: int, done: int) -> None:
        """Report how much of a unit is done."""
        with self._lock:
            self._under_way[stage, unit] = done
            self.show()

    def finish(self, stage: int, unit: int, size: int | None) -> None:
        """Report a unit that is done, now or by an earlier run."""
        with self._lock:
            under_way = self._under_way.pop((stage, unit), 0)
            self._done += under_way if size is None else size
            self.show()

    def show(self) -> None:
        """Report how much is done in all, unless that is known."""
        with self._lock:
            done = self._done + sum(self._under_way.values())
            if self.notify.progress is not None and done > self._shown:
                self._shown = done
                self.notify.progress(done, self.total)


@dataclass(frozen=True)
class Stage:
    """One stage of a plan: its units, where their results go, and what came before."""

    number: int
    units: Sequence[object]
    keeper: SummaryKeeper | RecordKeeper  # where results of units go
    tracker: Tracker
    size: Callable[[int], int | None]  # how much a unit counts in progress
    before: State | None  # the merged state of the stage before

    def finish(self, unit: int) -> None:
        """Report a unit that is done, now or by an earlier run."""
        self.tracker.finish(self.number, unit, self.size(unit))


RunStage = Callable[[Stage], None]  # does the units that are missing; then all are kept


class Engine(Protocol):
    """Where units run."""

    takes_live: bool

    def start(self, job: Job) -> AbstractContextManager[RunStage]:
        """Begin with a job; what was opened for it is closed at the end."""
        ...


class Here:
    """Does units one after the other in this process: takes arrays, modules and streams."""

    takes_live = True

    def start(self, job: Job) -> AbstractContextManager[RunStage]:
        """Begin with a job; the worker that made the plan does the units too."""
        return nullcontext(partial(_run_here, job))


def _run_here(job: Job, stage: Stage) -> None:
    """Do the units that are missing; what is done is written even if one fails."""
    worker, keeper, tracker = job.worker, stage.keeper, stage.tracker
    worker.enter(job.plan, stage.number, stage.before)
    try:
        missing = keeper.missing()
        for place, unit in enumerate(missing):
            prepare_next(worker, stage.units, missing[place : place + 2])
            scratch = Scratch(job.working.scratch, stage.number, unit)
            ticks = Ticks(partial(tracker.at, stage.number, unit), tracker.note)
            result = worker.run(stage.units[unit], scratch, ticks)
            keeper.add(unit, result)
            if scratch.used:
                keeper.flush()  # first on the disk, then out of the scratch
                scratch.clear()
            stage.finish(unit)
            del result
            trim()
    except BaseException:
        keeper.flush()
        raise


def engine_for(name: str, workers: int) -> Engine:
    """Return an engine by name."""
    check_names("engine", [name], ENGINES)
    if type(workers) is not int or workers < 1:
        raise ConfigError(
            f"expected at least 1 as workers, got {workers!r}",
            hint="give a whole number to --workers",
            slug="number-too-small",
        )
    if name == "here":
        if workers != 1:
            raise ConfigError(
                f"cannot use {workers} workers with the engine here",
                hint="one process does the work there; several need --engine=pool",
                slug="engine-workers",
            )
        return Here()
    from isoscope.engine.pool import Pool

    return Pool(workers)
