"""Running a spec: target, lock, worker, plan, stages, results. The only way work is done."""

import gc
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar, Generic, Protocol, TypeVar, cast

from isoscope.accumulate.survey import Survey
from isoscope.dataclass import dataclass
from isoscope.display import Results
from isoscope.engine import Job, Notify, Tracker, Where, engine_for
from isoscope.engine.base import Engine, Follows, Stage, Worker, kept_files
from isoscope.engine.failures import Failures, UnitsMissingError
from isoscope.engine.plan import Plan, Unit
from isoscope.errors import (
    EngineError,
    RowError,
    RunExistsError,
    StoreError,
    TooFewRowsError,
    need_packages,
)
from isoscope.store import new_origin, save
from isoscope.store.keepers import ROOM, RecordKeeper, SummaryKeeper
from isoscope.store.origin import versions
from isoscope.store.run import load
from isoscope.store.schema import plain_values
from isoscope.store.state import State
from isoscope.store.working import Working, open_target
from isoscope.study.experiment import load_at
from isoscope.study.spec import Execution, Spec, cannot_resume, digest, refuse_other
from isoscope.types import Reading

P = TypeVar("P", bound=Plan)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
NONE: frozenset[int] = frozenset()
WITHOUT = "-"  # between the id of a run and the number of units it was finished without
OTHER_VERSION = ": it was begun by another version"
Live = Mapping[str, object]  # objects that Python passed in place of names


class Planner(Worker[object], Protocol[R_co]):
    """A worker that can also make the plan, and results of what all units have found."""

    def content(self) -> Mapping[str, str]:
        """Return fingerprints of what the spec names, by a word for each.

        Only a run that is written to a folder needs them.
        """
        return {}

    def plan(self) -> Plan:
        """Cut the work into units."""
        ...

    def finish(self, done: "Finished") -> R_co:
        """Return the results, and write the run where there is a target."""
        ...


@dataclass(frozen=True)
class Finished:
    """All stages are done: what was found, and where it is to be written."""

    spec: "Runnable[object]"
    plan: Plan
    found: list[State | list[object]]  # per stage a State, or the records of its units
    id: str
    target: Path | None
    overwrite: bool
    notes: tuple[str, ...] = ()
    scratch: Callable[[], Path] = Path  # the folder of all units' scratch
    missing: str = ""  # which units are missing, where the run ends without them

    def mark(self, readings: Iterable[Reading]) -> list[Reading]:
        """Return readings with a warning where units are missing."""
        if not self.missing:
            return list(readings)
        return [replace(each, warnings=(*each.warnings, self.missing)) for each in readings]

    def save_values(
        self,
        readings: Sequence[Reading],
        settings: Mapping[str, object],
        source: Mapping[str, object],
        seed: int,
    ) -> None:
        """Write a run of values that were computed without rows to summarise."""
        assert self.target is not None
        whole = {**self.spec.settings(), **settings, "documents": False}
        measures = sorted({each.measure for each in readings})
        command = self.spec.command
        origin = new_origin(
            sources=[{**source, "fingerprint": digest([whole, seed])}],
            settings={**whole, "measures": measures, "as_published": False},
            seed=seed,
            kind=command,
        )
        config = {command: self.spec.to_config()}
        empty = State(Survey())
        save(self.target, empty, readings, origin, config, self.overwrite, resume=True)

    def kept(self, unit: int, stage: int = 0) -> Path:
        """Return the folder of the files that a unit has kept; it may not be there."""
        return kept_files(self.scratch(), f"{stage + 1}-{unit}")

    @property
    def state(self) -> State:
        """The merged summaries of the first stage."""
        found = self.found[0]
        assert isinstance(found, State)
        return found

    @property
    def records(self) -> list[object]:
        """The records of all units of the first stage, in order."""
        found = self.found[0]
        assert not isinstance(found, State)
        return found

    def plan_as(self, kind: type[P]) -> P:
        """Return the plan as what the worker made it."""
        assert isinstance(self.plan, kind)
        return self.plan


class Runnable(Spec, Generic[R_co], frozen=True, kw_only=True):
    """A spec that can be run."""

    keeps: ClassVar[str] = "summaries"  # or "records": what units give
    room: ClassVar[int] = ROOM  # bytes of summaries that may wait in memory for others
    plans: ClassVar[type[Plan]] = Plan
    worker_at: ClassVar[str] = ""  # "module:Class", called with the spec, `notify` and `live`
    reads_again: ClassVar[str] = ""  # "module:function": from a folder to what `run` returned
    torch_for: ClassVar[str] = ""  # what cannot be done without torch and transformers, if so
    stays_open: ClassVar[bool] = False  # whether what is opened is used until the run ends

    def open(self, notify: Notify, live: Live | None = None) -> Planner[R_co]:
        """Open what the spec names; `live` has objects in place of names."""
        if self.torch_for:
            need_torch(self.torch_for)
        worker = cast(Callable[..., Planner[R_co]], load_at(self.worker_at))
        return worker(self, notify, live or {})

    def decode_plan(self, content: bytes) -> Plan:
        """Return the plan that a file holds."""
        return self.plans.decode(content)


def need_torch(who: str = "a survey") -> None:
    """Refuse to begin where the packages of models are missing."""
    need_packages(who, ("torch", "transformers"), "hf")


def run(
    spec: Runnable[R],
    execution: Execution | None = None,
    *,
    live: Live | None = None,
    notify: Notify | None = None,
) -> R:
    """Do what a spec says and return its results.

    An unfinished run is resumed; one that is finished, of the same spec and content, is read,
    unless units are missing in it that should not be.
    """
    execution, notify = execution or Execution(), notify or Notify()
    engine = engine_for(
        Where(
            execution.engine,
            execution.workers,
            execution.address,
            execution.gpus_per_worker,
            execution.memory_per_worker,
        )
    )
    _refuse_live(spec, engine, live)
    _refuse_sharded(spec, engine)
    if not isinstance(engine, Follows):
        return _run(spec, execution, engine, live, notify)
    if not engine.leads:
        return cast(R, engine.follow())
    with engine.leading() as publish:
        results = _run(spec, execution, engine, live, notify)
        publish(results)
    return results


def _run(
    spec: Runnable[R], execution: Execution, engine: Engine, live: Live | None, notify: Notify
) -> R:
    """Do what a spec says, in the process that makes the plan and the results."""
    try:
        target = open_target(execution.output, execution.overwrite)
    except RunExistsError:
        if (finished := _read_again(spec, execution, live, notify)) is None:
            raise
        return finished
    with (
        Working(target, overwrite=execution.overwrite) as working,
        _opened(spec, notify, live) as worker,
    ):
        id, plan = _make_plan(spec, worker, working)
        if execution.workers > len(plan.stages[0]) and "unit" in spec.options():
            units = f"{len(plan.stages[0])} unit{'s' * (len(plan.stages[0]) > 1)}"
            notify.tell(f"{units} for {execution.workers} workers: a smaller --unit makes more")
        failures = Failures(
            [len(units) for units in plan.stages],
            # A stream is not read twice, nor is it known of an object.
            0 if _only_here(spec, live) else execution.retries,
            execution.allow_missing,
            "" if working.folder is None else str(working.folder),
        )
        try:
            done = _do_stages(spec, plan, id, worker, engine, working, notify, failures)
            results = worker.finish(done)
            _remark(results, done.missing)
            return results
        except (RowError, TooFewRowsError):  # as it would be every time: nothing to resume
            if not failures.given_up:
                working.restart()
            raise


@contextmanager
def _opened(spec: Runnable[R], notify: Notify, live: Live | None) -> Generator[Planner[R]]:
    """Open what a spec names while Python's garbage collector rests.

    Importing torch and loading a model makes a million objects that stay, and the collector
    would go through all of them again and again: a quarter of the time that loading takes.
    Where they are used until the run ends, it ignores them that long.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        worker = spec.open(notify, live)
        ignored = spec.stays_open and not gc.get_freeze_count()
        if ignored:
            gc.freeze()
    finally:
        if was_on:
            gc.enable()
    try:
        yield worker
    finally:
        if ignored:
            gc.unfreeze()


def _read_again(
    spec: Runnable[R], execution: Execution, live: Live | None, notify: Notify
) -> R | None:
    """Return what a finished run found; None where it is another one, or cannot be read."""
    if not spec.reads_again or execution.output is None:
        return None
    path = Path(execution.output)
    try:
        saved = load(path)
        if not saved.manifest.id or _other_options(spec, saved.config.get(spec.command)):
            return None
    except StoreError:
        return None
    worker = spec.open(notify, live)
    id, _, without = saved.manifest.id.partition(WITHOUT)
    same = id == digest(spec.resolve(worker.content()))
    if not same or saved.manifest.versions.get("isoscope") != versions()["isoscope"]:
        return None
    if without and not execution.allow_missing:
        raise UnitsMissingError(
            f"the run {path.name!r} was finished without {without} of its units",
            hint="--overwrite does it again in full, --allow-missing shows it as it is",
            slug="units-missing",
        )
    notify.tell(f"{path} is finished: shown as it was saved; --overwrite does it again")
    return cast(Callable[[Path], R], load_at(spec.reads_again))(path)


def _other_options(spec: Spec, saved: object) -> bool:
    """Whether a config certainly has other options: a model need not be opened for that."""
    if not isinstance(saved, dict):
        return True
    mine = cast(Mapping[str, object], plain_values(spec.to_config(absolute=True)))
    config = cast(Mapping[str, object], saved)
    known = {name for name, value in mine.items() if value is not None and name in config}
    return any(config[name] != mine[name] for name in known)


def _make_plan(spec: Runnable[R], worker: Planner[R], working: Working) -> tuple[str, Plan]:
    """Return the plan of an unfinished run, or make one and write it."""
    if working.folder is None:
        return "", worker.plan()
    resolved = spec.resolve(worker.content())
    id = digest(resolved)
    try:
        plan = _read_plan(spec, id, resolved, working)
    except StoreError:
        if not working.overwrite:
            raise
        plan = None
    if plan is None:
        plan = worker.plan()
        working.begin(id, resolved, plan.encode())
    return id, plan


def _read_plan(
    spec: Runnable[object], id: str, resolved: Mapping[str, object], working: Working
) -> Plan | None:
    """Return the plan of an unfinished run; an error where it is another one or damaged."""
    assert working.folder is not None
    begun = working.begun()
    if begun is None:
        if any((working.folder / name).exists() for name in ("units", "again")):
            raise cannot_resume(working.name, OTHER_VERSION)  # it had no plans
        return None
    if begun.id != id:
        refuse_other(working.name, begun.resolved, resolved, spec.options())
    if begun.id != id or begun.version != versions()["isoscope"]:
        raise cannot_resume(working.name, OTHER_VERSION)
    return spec.decode_plan(working.read_plan(begun))


def _do_stages(
    spec: Runnable[object],
    plan: Plan,
    id: str,
    worker: Planner[object],
    engine: Engine,
    working: Working,
    notify: Notify,
    failures: Failures,
) -> Finished:
    """Do all stages, one after the other; a stage begins when the one before is whole.

    Where units may be missing, those of a later stage that are the same as a missing one are
    missing as well: both passes are then over the same rows.
    """

    def note(text: str) -> None:
        if text not in working.notes:
            working.note(text)
            notify.tell(text)

    tracker = Tracker(notify, plan.total(), note, sum(map(len, plan.stages)))
    tracker.show()
    found: list[State | list[object]] = []
    before: State | None = None
    lost: set[Unit] = set()
    with engine.start(Job(spec, plan, worker, working, notify.tell)) as run_stage:
        for number, units in enumerate(plan.stages):
            after = before.digest() if before is not None and working.folder is not None else ""
            folder = working.stage(number + 1, after)
            if folder is None and not engine.takes_live:
                folder = working.spare() / f"stage-{number + 1}"
            keeper = _keeper(spec, len(units), folder, f"{id} {number + 1} {after}", working)
            stage = Stage(
                number,
                units,
                keeper,
                tracker,
                failures,
                partial(plan.size, number),
                before,
                frozenset(n for n, unit in enumerate(units) if unit in lost) if lost else NONE,
            )
            for unit in sorted({*range(len(units))} - {*keeper.missing()}):
                stage.find(unit)
            try:
                run_stage(stage)
            finally:
                working.record_failures(failures.in_order())
            lost |= _check_missing(stage)
            if number + 1 < len(plan.stages):
                keeper.flush()  # the next stage builds on it: a kill must not undo it
            total = keeper.total()
            found.append(total)
            before = total if isinstance(total, State) else None
    warning = failures.warning
    notes = (*working.notes, *filter(None, [warning]))
    if warning:
        notify.tell(warning)
    return Finished(
        spec,
        plan,
        found,
        f"{id}{WITHOUT}{len(failures.given_up)}" if id and warning else id,
        working.target,
        working.overwrite,
        notes,
        working.scratch,
        warning,
    )


def _check_missing(stage: Stage) -> set[Unit]:
    """Return the units that a stage ends without; raise where it must not end without them."""
    missing = stage.failures.missing(stage.number)
    if missing and not stage.failures.allow_missing:
        stage.keeper.flush()
        raise stage.failures.error()
    if missing and len(stage.keeper.missing()) == len(stage.units):
        raise stage.failures.error()  # there is nothing to finish with
    return {cast(Unit, stage.units[unit]) for unit in missing}


def _keeper(
    spec: Runnable[object], units: int, folder: Path | None, id: str, working: Working
) -> SummaryKeeper | RecordKeeper:
    if spec.keeps == "records":
        return RecordKeeper(units, folder, id=id)

    @cache
    def own() -> Path:
        """Return a folder of its own for what does not fit into memory, made when used."""
        return Path(mkdtemp(dir=working.spare()))

    room = spec.room if folder is None else ROOM
    return SummaryKeeper(units, folder, id=id, spare=own, room=room)


def _only_here(spec: Spec, live: Live | None) -> dict[str, str]:
    """Return what only this process has, by the name of the option, and what it is."""
    found = {name: "an object in memory" for name in live or {}}
    for name, option in spec.options().items():
        if option.about.path and _is_stream(spec.value(name)):
            found[name] = "a stream that is read once"
    return found


def _refuse_live(spec: Spec, engine: Engine, live: Live | None) -> None:
    """Refuse what only this process has where units run in others."""
    if engine.takes_live:
        return
    for name, what in _only_here(spec, live).items():
        raise EngineError(
            f"cannot hand {name} to the engine {engine.name}: it is {what}",
            hint="only --engine=here takes it; or save it to a file and pass its path",
            slug="engine-live",
        )


def _refuse_sharded(spec: Spec, engine: Engine) -> None:
    """Refuse a model that is spread over devices where every process holds a whole one."""
    option = spec.options().get("device_map")
    if isinstance(engine, Follows) and option is not None and spec.value("device_map"):
        raise EngineError(
            f"cannot use --device-map with the engine {engine.name}: every rank holds a whole "
            "model",
            hint="one process spreads it over all devices: --engine=here --device-map=auto",
            slug="engine-sharded",
        )


def _remark(results: object, missing: str) -> None:
    """Have results say what is missing, where they do not yet."""
    if missing and isinstance(results, Results) and missing not in results.remarks:
        results.remarks = (*results.remarks, missing)


def _is_stream(value: object) -> bool:
    """Whether a path names standard input, a pipe or the like."""
    if not isinstance(value, str):
        return False
    if value == "-" or value.startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd/")):
        return True  # even if a file is behind it: it is the one of this process
    with suppress(OSError, ValueError):
        path = Path(value).expanduser()
        return path.exists() and not (path.is_file() or path.is_dir())
    return False
