"""The engine of a Ray cluster: tasks for rows and checkpoints, actors that hold a model.

Ray schedules, does tasks again and limits memory; actors that die are replaced here. Workers
get the spec, the plan and numbers of units; results come back as files in a folder of each
task, on a file system that all machines share. They are part of the run once the driver has
moved them there, whoever is killed when.
"""

import logging
import os
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from isoscope.dataclass import dataclass
from isoscope.engine import wire
from isoscope.engine.base import Job, RunStage, Stage
from isoscope.engine.desk import Desk, refuse_script, worker_died
from isoscope.engine.task import OpenJob, left_mark
from isoscope.errors import EngineError, need_packages
from isoscope.store.atomic import SpareFolder

if TYPE_CHECKING:
    from ray import Handle, Method, ObjectRef
    from ray.exceptions import RayError

T = TypeVar("T")
LOOK = 0.5  # seconds between two looks at what workers report
OFTEN = 1.0  # seconds between two reports of a worker
GRACE = 5.0  # seconds that workers have to hand over what they did when a run is interrupted
PATIENCE = 5.0  # seconds until an address that does not answer is given up
CONNECT = 30.0  # seconds that Ray itself may take to connect
STORE = 80 << 20  # bytes of Ray's memory for objects: results are files
LONGEST = 45  # characters of a folder for Ray's sockets, whose names have at most 107
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    # Else Ray's workers make way for every other process, which those of the pool do not.
    "RAY_worker_niceness": "0",
}


@dataclass(frozen=True)
class Ray:
    """Workers on a cluster, or on one of this machine's own that lasts as long as the run."""

    workers: int
    address: str | None = None
    gpus: float = 0.0  # of each worker
    memory: float = 0.0  # GB of each worker
    name = "ray"
    takes_live = False

    @contextmanager
    def start(self, job: Job) -> Generator[RunStage]:
        """Connect, or start a cluster; what was started is stopped at the end."""
        need_packages("the engine ray", ("ray",), "ray")
        refuse_script(job.spec, self.name)
        most = max(map(len, job.plan.stages), default=1)
        here = replace(self, workers=max(min(self.workers, most), 1))  # Ray starts that many
        with _cluster(here, job.plan.threads) as local, left_mark(job.working) as mark:
            _check_resources(self, job, local)
            session = RaySession(job, self, mark)
            try:
                yield session.run
            finally:
                session.close()


@dataclass(frozen=True)
class Summons:
    """All that a worker needs to begin: it is sent once and fetched by every process."""

    key: str  # of the run of the engine: a process may have been of use to another one
    order: wire.Open


class Reports:
    """An actor that takes up what workers report; the driver looks every now and then."""

    def __init__(self) -> None:
        self.reports: dict[str, wire.At] = {}
        self.stopped = False

    def at(self, worker: str, report: wire.At) -> bool:
        """Take up where a worker is; return whether it should end its task."""
        self.reports[worker] = report
        return self.stopped

    def take(self) -> dict[str, wire.At]:
        """Return what is new."""
        found, self.reports = self.reports, {}
        return found

    def stop(self) -> None:
        """Have workers end after the units that are under way."""
        self.stopped = True


class Holder:
    """An actor that holds an opened worker, with its model."""

    def __init__(self, summons: "list[ObjectRef[Summons]]", reports: "Handle") -> None:
        import ray

        # In a list: of arguments that are references Ray says on stderr that they may be lost.
        self.summons, self.reports = ray.get(summons[0]), reports

    def is_there(self) -> bool:
        """Answer; of an actor that waits for a machine nothing is heard."""
        return True

    def run(self, task: wire.Assignment) -> list[object]:
        """Do a task; return the messages about it."""
        return run_task(self.summons, self.reports, task)


_open: dict[str, OpenJob] = {}  # by the key of the run; one at a time


def run_task(summons: Summons, reports: "Handle", task: wire.Assignment) -> list[object]:
    """Do a task in a process of Ray; return the messages about it, errors included."""
    found: list[object] = []
    reporter = _Reporter(reports, found)
    try:
        job = _open.get(summons.key)
        if job is None:
            _open.clear()
            job = _open[summons.key] = OpenJob.of(summons.order)
        if not job.run(task, reporter.emit, reporter.is_stopped):
            _open.clear()  # what the error left behind is not used again
    except Exception as error:
        found.append(wire.Failed.of(error, traceback.format_exc()))
    return found


@dataclass
class _Reporter:
    """Keeps the messages of a task, and reports where it is now and then."""

    reports: "Handle"
    found: list[object]
    worker: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    _last: float = 0.0
    _asked: "ObjectRef[object] | None" = None

    def emit(self, message: object) -> None:
        if not isinstance(message, wire.At):
            self.found.append(message)
            return
        if not message.done or monotonic() - self._last >= OFTEN:
            self._last = monotonic()
            self._asked = self.reports.at.remote(self.worker, message)

    def is_stopped(self) -> bool:
        import ray

        if self._asked is None:
            return False
        try:
            return bool(ray.get(self._asked, timeout=GRACE))
        except ray.exceptions.ActorDiedError:
            return True  # killed for good: the run has ended
        except Exception:  # nobody can be asked at the moment
            return False


_Brought: TypeAlias = "list[object] | RayError"  # the messages of a task, or why there are none


class _Slot(Protocol):
    """A place for one task at a time."""

    def __call__(self, task: wire.Assignment, /) -> "ObjectRef[object]": ...


@dataclass(eq=False)
class _ActorSlot:
    """A place that is an actor, and after its death another one.

    Ray would restart it, and have its task wait for that, however long there is no machine for
    it: the others would have done all the rest.
    """

    create: "Callable[[], Handle]"
    actor: "Handle | None" = None
    failed: int = 0  # times in a row that it could not begin

    def __call__(self, task: wire.Assignment, /) -> "ObjectRef[object]":
        assert self.actor is not None
        return self.actor.run.remote(task)

    def begin(self) -> "ObjectRef[object]":
        """Create an actor instead of the one before; return what is there once it is."""
        self.end()
        self.actor = self.create()
        return self.actor.is_there.remote()

    def end(self) -> None:
        """Let go of the actor; one that cannot be reached may be alive."""
        import ray

        if self.actor is not None:
            with suppress(Exception):
                ray.kill(self.actor)


class RaySession:
    """One run of units on a cluster that is there."""

    def __init__(self, job: Job, engine: Ray, mark: wire.Mark) -> None:
        import ray

        self.job, self.engine, self.key = job, engine, mark.key
        order = wire.Open(job.spec, job.plan.encode(), str(job.working.scratch()), mark)
        self.summons = ray.put(Summons(self.key, order))
        self.reports = ray.remote(Reports).options(num_cpus=0, max_restarts=-1).remote()
        self.actors: list[_ActorSlot] = []
        self.starting: dict[ObjectRef[object], _ActorSlot] = {}
        self.stages = 0

    def close(self) -> None:
        """Let go of what the cluster holds for this run."""
        import ray

        for each in self.actors:
            each.end()
        with suppress(Exception):
            ray.kill(self.reports)

    def run(self, stage: Stage) -> None:
        """Hand out the units that are missing; return when all are kept or given up."""
        self.stages += 1
        desk = Desk.of(self.job, stage, self.engine.workers, apart=f"{self.key}{self.stages}")
        if not desk.tasks:
            return
        retries = stage.failures.retries
        free = self._slots(retries, min(self.engine.workers, len(desk.tasks)))
        pending: dict[ObjectRef[object], tuple[wire.Assignment, _Slot]] = {}
        done: list[tuple[_Brought, wire.Assignment]] = []
        try:
            while True:
                while free and (task := desk.next()) is not None:
                    slot = free.pop()
                    pending[slot(task)] = task, slot
                for brought, task in done:  # while workers are busy with the next ones
                    self._take(brought, task, desk)
                done = []
                if not pending and not desk.tasks:
                    return
                for ref in _wait([*pending, *self.starting]):
                    brought = _fetch(ref)
                    if ref in pending:
                        task, slot = pending.pop(ref)
                        done.append((brought, task))
                        free += self._freed(brought, slot)
                    else:
                        free += self._begun(brought, self.starting.pop(ref), retries)
                self._watch(desk)
        except BaseException:
            desk.end(None)
            self._halt(list(pending))
            for task in (*(task for task, _ in pending.values()), *(task for _, task in done)):
                with suppress(Exception):
                    desk.collect(task)
            raise

    def _slots(self, retries: int, count: int) -> list[_Slot]:
        """Return places for tasks: actors that are there, or none in particular."""
        import ray

        needs: dict[str, float] = {"num_cpus": self.job.plan.threads}
        if self.engine.gpus:
            needs["num_gpus"] = self.engine.gpus
        if self.engine.memory:
            needs["memory"] = int(self.engine.memory * 1e9)
        summons, reports = self.summons, self.reports
        if not self.job.spec.stays_open:
            task = cast("Method", ray.remote(run_task)).options(max_retries=retries, **needs)

            def submit(each: wire.Assignment) -> "ObjectRef[object]":
                return task.remote(summons, reports, each)

            return [submit] * count
        holder = ray.remote(Holder).options(**needs)

        def create() -> "Handle":
            return holder.remote([summons], reports)

        while len(self.actors) < count:
            slot = _ActorSlot(create)
            self.actors.append(slot)
            self.starting[slot.begin()] = slot
        there: list[_Slot] = [x for x in self.actors if x not in self.starting.values()]
        return there[:count]

    def _freed(self, brought: "_Brought", slot: _Slot) -> list[_Slot]:
        """Return the place of a task that has ended, unless its actor is to be replaced."""
        if isinstance(slot, _ActorSlot) and _is_lost(brought):
            self.starting[slot.begin()] = slot
            return []
        return [slot]

    def _begun(self, brought: "_Brought", slot: _ActorSlot, retries: int) -> list[_Slot]:
        """Return the place of an actor that is there; try another where it has died."""
        if not _is_lost(brought):
            _refuse_foreign(brought)
            slot.failed = 0
            return [slot]
        slot.failed += 1
        if slot.failed <= retries:
            self.starting[slot.begin()] = slot
            return []
        self.actors.remove(slot)
        if not self.actors:
            assert isinstance(brought, Exception)
            raise _cannot_begin(brought) from brought
        return []

    def _take(self, brought: "_Brought", task: wire.Assignment, desk: Desk) -> None:
        """Take in what a task has brought; units of one that Ray gave up come back."""
        import ray

        left = list(task.units)
        _refuse_foreign(brought)
        if isinstance(brought, ray.exceptions.RayError):
            for unit in desk.collect(task):
                left.remove(unit)
            if len(left) == 1:
                error = worker_died(left[0], _first_line(brought))
                # What needs no actor was tried again by Ray itself.
                desk.fail(task, left[0], error, final=not self.job.spec.stays_open)
            else:  # nobody knows which one it was
                desk.put_back(task, left)
        else:
            for message in brought:
                for unit in desk.take(task, message):
                    left.remove(unit)
            desk.put_back(task, left)  # where it was told to stop
        desk.close(task)

    def _watch(self, desk: Desk) -> None:
        """Pass on what workers report."""
        import ray

        with suppress(ray.exceptions.RayError):
            found = ray.get(self.reports.take.remote(), timeout=LOOK)
            for worker, report in cast(dict[str, wire.At], found).items():
                if not desk.stage.keeper.has(report.unit):
                    desk.stage.at(report.unit, report.done, worker)

    def _halt(self, pending: "list[ObjectRef[object]]") -> None:
        """Let workers hand over what they have done; what they leave is found by the next.

        Nothing is cancelled: Ray 2.60 ends the whole driver where a task completes while it
        is cancelled. Workers end with the connection, or at the end of a unit, whichever is
        first.
        """
        import ray

        with suppress(Exception):
            ray.get(self.reports.stop.remote(), timeout=GRACE)
            ray.wait(pending, num_returns=len(pending), timeout=GRACE)


def _wait(pending: "list[ObjectRef[object]]") -> "list[ObjectRef[object]]":
    """Return what is done, at the latest after a while."""
    import ray

    return ray.wait(pending, num_returns=1, timeout=LOOK)[0]


def _fetch(ref: "ObjectRef[object]") -> "_Brought":
    """Return the messages of a task that is done, or why there are none."""
    import ray

    try:
        return cast(list[object], ray.get(ref))
    except ray.exceptions.RayError as error:
        return error


def _is_lost(brought: "_Brought") -> bool:
    """Whether the process is gone, or cannot be reached: Ray does not always say which."""
    import ray

    raised = isinstance(brought, ray.exceptions.RayTaskError)
    return isinstance(brought, ray.exceptions.RayError) and not raised


def _refuse_foreign(brought: "_Brought") -> None:
    """Raise where a process of Ray could not even begin with our code."""
    import ray

    if isinstance(brought, ray.exceptions.RayTaskError):
        raise _cannot_begin(brought.cause or brought) from brought


def _cannot_begin(error: BaseException) -> EngineError:
    return EngineError(
        f"a worker of Ray cannot begin: {_first_line(error)}",
        hint="install the same versions of isoscope and Python on all machines",
        slug="engine-worker",
    )


def _first_line(error: BaseException) -> str:
    """Return what Ray says of a death, without its advice."""
    text = str(error).strip()
    name = type(error).__name__
    return f"{name}: {text.splitlines()[0][:200]}" if text else name


@contextmanager
def _cluster(engine: Ray, threads: int) -> Generator[bool]:
    """Be connected to a cluster; yield whether it is one of our own, which ends with us."""
    import ray

    if ray.is_initialized():  # by the program that called
        yield False
        return
    pinned = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL")}
    env = {**pinned, "TOKENIZERS_PARALLELISM": "false"}
    try:
        _keep_off_stdout()
        if engine.address is not None:
            _check_answers(engine.address)
            _connect(
                engine.address,
                lambda: ray.init(
                    engine.address,
                    runtime_env={"env_vars": env},
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                ),
            )
            yield False
            return
        with _sockets() as folder:
            path = os.pathsep.join(str(each) or str(Path.cwd()) for each in sys.path)
            ours = {**QUIET, **env, "PYTHONPATH": path, "RAY_AUTH_TOKEN": os.urandom(32).hex()}
            with _environment(ours):
                ray.init(
                    "local",  # also where a cluster runs on this machine
                    num_cpus=engine.workers * threads,
                    num_gpus=None if engine.gpus else 0,
                    include_dashboard=False,
                    object_store_memory=STORE,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _temp_dir=folder,
                    _node_ip_address="127.0.0.1",
                )
                try:
                    yield True
                finally:
                    ray.shutdown()
    finally:
        ray.shutdown()


def _print_nothing(*_: object, **__: object) -> None:
    """Take the place of what prints."""


def _keep_off_stdout() -> None:
    """Keep remarks of Ray on dead processes off the standard output, where only data goes.

    There is no option for it; what died, and at which unit, is reported by the desk.
    """
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = _print_nothing


@contextmanager
def _sockets() -> Generator[str]:
    """Yield a temporary folder with a short name, removed also after a kill."""
    with SpareFolder() as folder:
        if len(folder) <= LONGEST:
            yield folder
        else:
            with tempfile.TemporaryDirectory(prefix="isoscope-", dir="/tmp") as short:
                yield short


@contextmanager
def _environment(values: Mapping[str, str]) -> Generator[None]:
    """Have variables that the processes of a cluster inherit."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _check_answers(address: str) -> None:
    """Refuse an address where nothing answers, before Ray waits for minutes."""
    if address == "auto":
        return
    parts = urlsplit(address if "://" in address else f"gcs://{address}")
    try:
        known = parts.scheme in ("ray", "gcs") and parts.hostname and parts.port
    except ValueError:  # a port that is none
        known = None
    if not known:
        raise EngineError(
            f"expected auto, HOST:PORT or ray://HOST:PORT as address, got {address!r}",
            hint="ray start --head prints the address of a cluster",
            slug="engine-address",
        )
    try:
        socket.create_connection((str(parts.hostname), parts.port or 0), PATIENCE).close()
    except OSError as error:
        raise _no_answer(address, error.strerror or str(error)) from None


def _connect(address: str, connect: Callable[[], object]) -> None:
    """Connect in a thread: Ray may wait for minutes for what does not speak its language."""
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            connect()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(CONNECT)
    if thread.is_alive():
        raise _no_answer(address, f"no answer within {CONNECT:.0f} s")
    if errors:
        lines = str(errors[0]).strip().splitlines() or [type(errors[0]).__name__]
        raise _no_answer(address, lines[0]) from errors[0]


def _no_answer(address: str, why: str) -> EngineError:
    return EngineError(
        f"cannot reach a Ray cluster at {address!r}: {why}",
        hint="ray status says whether it runs; without --address a local one is started",
        slug="engine-address",
    )


def _check_resources(engine: Ray, job: Job, local: bool) -> None:
    """Refuse, or with a cluster that may grow remark, what no machine has."""
    import ray

    needs = {
        "CPU": float(job.plan.threads),
        "GPU": engine.gpus,
        "memory": engine.memory * 1e9,
    }
    nodes = ray.nodes()
    machines = [cast(dict[str, float], each["Resources"]) for each in nodes if each["Alive"]]
    if any(all(has.get(name, 0.0) >= n for name, n in needs.items()) for has in machines):
        return
    words = [f"{n:g} {name}" for name, n in needs.items() if n and name != "memory"]
    words += [f"{engine.memory:g} GB of memory"] if engine.memory else []
    problem = f"no machine of the Ray cluster has {' and '.join(words)} for a worker"
    if local:
        raise EngineError(
            problem,
            hint="lower --threads, --gpus-per-worker or --memory-per-worker",
            slug="engine-resources",
        )
    job.tell(f"{problem}: units wait until there is one")
