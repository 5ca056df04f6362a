"""Running a spec: target, lock, worker, plan, stages, results. The only way work is done."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from isoscope.engine import Job, Notify, Tracker, engine_for
from isoscope.engine.base import Engine, Worker
from isoscope.errors import EngineError, ResumeError, RowError, TooFewRowsError
from isoscope.store.records import RecordKeeper
from isoscope.store.summaries import State, SummaryKeeper
from isoscope.store.working import Working, open_target
from isoscope.study.execution import Execution
from isoscope.study.plan import Plan
from isoscope.study.spec import Spec, refuse_other

R = TypeVar("R")
Live = Mapping[str, Any]  # objects that Python passed in place of names


class Planner(Worker[Any], Protocol):
    """A worker that can also make the plan."""

    def content(self) -> Mapping[str, str]:
        """Return fingerprints of what the spec names, by a word for each."""
        ...

    def plan(self) -> Plan:
        """Cut the work into units."""
        ...


@dataclass(frozen=True)
class Finished(Generic[R]):
    """All stages are done: what was found, and where it is to be written."""

    spec: "Runnable[Any]"
    plan: Any
    found: list[Any]  # per stage a State, or the records of its units
    id: str
    target: Path | None
    overwrite: bool
    notes: tuple[str, ...] = ()
    live: bool = False
    seen: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def state(self) -> State:
        """The merged summaries of the first stage."""
        assert isinstance(self.found[0], State)
        return self.found[0]

    @property
    def records(self) -> list[Any]:
        """The records of all units of the first stage, in order."""
        return self.found[0]


class Runnable(Spec, Generic[R], frozen=True, kw_only=True):
    """A spec that can be run."""

    keeps: ClassVar[str] = "summaries"  # or "records": what units give
    plans: ClassVar[type[Plan]] = Plan

    def open(self, notify: Notify, live: Live | None = None) -> Planner:
        """Open what the spec names; `live` has objects in place of names."""
        raise NotImplementedError

    def finish(self, done: Finished[R], worker: Any) -> R:
        """Return the results, and write the run where there is a target."""
        raise NotImplementedError

    def decode_plan(self, content: bytes) -> Plan:
        """Return the plan that a file holds."""
        return self.plans.decode(content)


def run(
    spec: Runnable[R],
    execution: Execution | None = None,
    *,
    live: Live | None = None,
    notify: Notify | None = None,
) -> R:
    """Do what a spec says and return its results; an unfinished run is resumed."""
    execution, notify = execution or Execution(), notify or Notify()
    engine = engine_for(execution.engine, execution.workers)
    _refuse_live(spec, engine, execution, live)
    target = open_target(execution.output, execution.overwrite)
    with Working(target, overwrite=execution.overwrite) as working:
        worker = spec.open(notify, live)
        id, plan = _planned(spec, worker, working)
        done = _done(spec, plan, id, worker, engine, working, notify, bool(live))
        try:
            return spec.finish(done, worker)
        except (RowError, TooFewRowsError):  # as it would be every time: nothing to resume
            if working.folder is not None:
                working.restart()
            raise


def _planned(spec: Runnable[R], worker: Planner, working: Working) -> tuple[str, Plan]:
    """Return the plan of an unfinished run, or make one and write it."""
    if working.folder is None:
        return "", worker.plan()
    content = worker.content()
    resolved, id = spec.resolved(content), spec.address(content)
    begun = working.begun()
    if begun is not None and begun.id != id and not working.overwrite:
        refuse_other(working.name, begun.resolved, resolved)
        raise _other_version(working.name)
    if begun is not None and begun.id == id:
        return id, spec.decode_plan(working.read_plan(begun))
    if begun is None and not working.overwrite:
        _refuse_older(working.folder)
    plan = worker.plan()
    working.begin(id, resolved, plan.encode())
    return id, plan


def _done(
    spec: Runnable[R],
    plan: Plan,
    id: str,
    worker: Planner,
    engine: Engine,
    working: Working,
    notify: Notify,
    live: bool,
) -> Finished[R]:
    """Do all stages, one after the other."""

    def note(text: str) -> None:
        working.note(text)
        notify.tell(text)

    tracker = Tracker(notify, plan.total(), note)
    tracker.begin()
    job = Job(
        spec, plan, plan.encode, worker, plan.threads, working.scratch, working.spare, live
    )
    found: list[Any] = []
    before: State | None = None
    with engine.start(job) as session:
        for number, units in enumerate(plan.stages):
            after = before.digest() if before is not None and working.folder is not None else ""
            folder = working.stage(number + 1, after)
            if folder is None and not engine.takes_live:
                folder = working.spare() / f"stage-{number + 1}"
            keeper = _keeper(spec, len(units), folder)
            missing = set(keeper.missing())
            for unit in range(len(units)):
                if unit not in missing:
                    tracker.finish(number, unit, plan.size(number, unit))

            def sizes(unit: int, number: int = number) -> int | None:
                return plan.size(number, unit)

            session.run(number, units, keeper, tracker, sizes, before)
            if number + 1 < len(plan.stages):
                keeper.flush() if folder is not None else None  # a kill must not undo it
            total = keeper.total()
            found.append(total)
            before = total if isinstance(total, State) else None
    return Finished(
        spec, plan, found, id, working.target, working.overwrite, tuple(working.notes), live
    )


def _keeper(
    spec: Runnable[Any], units: int, folder: Path | None
) -> SummaryKeeper | RecordKeeper:
    kind = SummaryKeeper if spec.keeps == "summaries" else RecordKeeper
    return kind(units, folder)


def _refuse_live(spec: Spec, engine: Engine, execution: Execution, live: Live | None) -> None:
    """Refuse what only this process has where units run in others."""
    streams = [
        name
        for name, option in spec.options().items()
        if option.about.path and spec.value(name) in ("-", "/dev/stdin")
    ]
    names = [*(live or {}), *streams]
    if names and not engine.takes_live:
        what = "standard input" if streams else "an object in memory"
        raise EngineError(
            f"cannot hand {names[0]} to the engine {execution.engine}: it is {what}",
            hint="only --engine here takes it; save it to a file and give its path",
            slug="engine-live",
        )


def _refuse_older(folder: Path) -> None:
    """Refuse units that a version without plans has left behind."""
    if any((folder / name).exists() for name in ("units", "again")):
        raise _other_version(folder.name)


def _other_version(name: str) -> ResumeError:
    return ResumeError(
        f"cannot resume {name!r}: it was begun by another version",
        hint="choose another folder, or begin again with --overwrite",
        slug="resume-other",
    )


__all__ = ["Finished", "Live", "Planner", "Runnable", "run"]
