"""The engine of processes that torchrun or accelerate has started: each holds a whole model.

Rank 0 leads: it makes the plan, gives out units, works on some itself and merges. The others
follow: they get the spec, the plan and numbers of units through the store of torchrun, and hand
over their results as files. No tensors are exchanged, so no process group is needed.
"""

import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol, cast

from isoscope.dataclass import dataclass
from isoscope.engine import wire
from isoscope.engine.base import Job, RunStage, Stage
from isoscope.engine.desk import Desk, refuse_script
from isoscope.engine.task import OpenJob, left_mark
from isoscope.errors import EngineError, need_packages

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store as TorchStore


class _Store(Protocol):
    """A store of torch: its stub takes text where it takes bytes."""

    def set(self, key: str, value: bytes, /) -> None: ...
    def get(self, key: str, /) -> bytes: ...
    def check(self, keys: list[str], /) -> bool: ...
    def delete_key(self, key: str, /) -> bool: ...


LOOK = 0.02  # seconds between two looks for messages
GRACE = 5.0  # seconds that the others have to hand over, or to take note of the end
PATIENCE = 60.0  # seconds in which all ranks have to find each other
CANNOT = 2  # the exit code of a rank when the leader has said what is wrong


@dataclass(frozen=True)
class Ranks:
    """Who this process is among those that torchrun has started."""

    rank: int
    world: int
    local: int = 0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Ranks | None":
        """Return what the environment says; None where it says nothing that makes sense."""
        try:
            rank, world = int(environment["RANK"]), int(environment["WORLD_SIZE"])
            found = cls(rank, world, int(environment.get("LOCAL_RANK", "0")))
        except (KeyError, ValueError):
            return None
        return found if 0 <= found.rank < found.world else None


@dataclass(frozen=True)
class Torchrun:
    """All ranks of a job, of which this process is one."""

    ranks: Ranks
    name = "torchrun"
    takes_live = False
    whole_models = True

    @classmethod
    def from_environment(cls, workers: int) -> "Torchrun":
        """Return the engine of the job that this process belongs to."""
        need_packages("the engine torchrun", ("torch",), "hf")
        ranks = Ranks.of(os.environ)
        if ranks is None:
            raise EngineError(
                "expected RANK and WORLD_SIZE from torchrun, got none",
                hint="start it as torchrun --nproc-per-node 2 -m isoscope ..., or take "
                "--engine=pool",
                slug="engine-rank",
            )
        if workers not in (1, ranks.world):
            raise EngineError(
                f"cannot use {workers} workers: torchrun has started {ranks.world}",
                hint="leave --workers out",
                slug="engine-rank",
            )
        return cls(ranks)

    @property
    def leads(self) -> bool:
        """Whether this process makes the plan and the results."""
        return self.ranks.rank == 0

    @contextmanager
    def leading(self) -> Generator[Callable[[object], None]]:
        """Lead the others; yield what tells them the results. They end where this fails."""
        store = Channel.open(self.ranks)
        try:
            yield lambda results: store.end(_packed(results))
        except BaseException:
            store.end(None)
            raise

    def follow(self) -> object:
        """Work for the leader; return its results, or leave where it could not do it."""
        channel = Channel.open(self.ranks)
        _take_device(self.ranks)
        job: OpenJob | None = None
        try:
            while (order := channel.next_order()) is not None:
                if isinstance(order, wire.Open):
                    job = OpenJob.of(order)
                else:
                    assert isinstance(order, wire.Assignment) and job is not None
                    job.run(order, channel.report, channel.is_stopped)
                channel.report(wire.Ready())
        except Exception as error:
            channel.report(wire.Failed.of(error, traceback.format_exc()))
            channel.until_end()
        return channel.results()

    @contextmanager
    def start(self, job: Job) -> Generator[RunStage]:
        """Begin with a job: the others open what this process has opened."""
        refuse_script(job.spec, self.name)
        channel = Channel.open(self.ranks)
        with left_mark(job.working) as mark:
            order = wire.Open(job.spec, job.plan.encode(), str(job.working.scratch()), mark)
            for rank in range(1, self.ranks.world):
                channel.give(rank, order)
            yield RankSession(job, self.ranks, channel, mark.key).run


def _take_device(ranks: Ranks) -> None:
    """Let `cuda` be the device of this rank."""
    import torch

    if torch.cuda.is_available():  # pragma: no cover - not on the machines of the tests
        torch.cuda.set_device(ranks.local % torch.cuda.device_count())


@dataclass
class Channel:
    """Messages between the ranks of a job, through the store that torchrun keeps for them."""

    store: _Store
    ranks: Ranks
    _given: dict[int, int] = field(default_factory=dict[int, int])
    _heard: dict[int, int] = field(default_factory=dict[int, int])
    _reported: int = 0
    _taken: int = 0
    _ended: bool = False

    jobs: ClassVar[int] = 0  # that this process has begun: the ranks count alike
    current: "ClassVar[Channel | None]" = None

    @classmethod
    def open(cls, ranks: Ranks) -> "Channel":
        """Return the channel of the job that is under way, or that of the next."""
        if cls.current is None:
            from torch.distributed import PrefixStore  # pyright: ignore[reportPrivateImportUsage]

            _take_device(ranks)
            again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            name = f"isoscope-{again}-{cls.jobs}"
            cls.jobs += 1
            cls.current = cls(cast(_Store, PrefixStore(name, _connect())), ranks)
        return cls.current

    # --- of the leader ----------------------------------------------------------------------
    def give(self, rank: int, order: "wire.Open | wire.Assignment") -> None:
        """Send an order to a rank."""
        number = self._given[rank] = self._given.get(rank, 0) + 1
        self.store.set(f"to-{rank}-{number}", pickle.dumps(order))

    def hear(self, rank: int) -> object | None:
        """Return the next message of a rank; None where there is none yet."""
        number = self._heard.get(rank, 0) + 1
        found = self._take(f"from-{rank}-{number}")
        if found is not None:
            self._heard[rank] = number
        return found

    def stop(self) -> None:
        """Have the others end their tasks after the units that are under way."""
        self.store.set("stop", b"1")

    def end(self, results: bytes | None) -> None:
        """Tell the others how it ended, once; wait until they know, as they need the store."""
        if self._ended:
            return
        self._ended, type(self).current = True, None
        with suppress(Exception):
            self.stop()
            self.store.set("end", b"" if results is None else results)
            names = [f"knows-{rank}" for rank in range(1, self.ranks.world)]
            end = time.monotonic() + GRACE
            while names and not self.store.check(names) and time.monotonic() < end:
                time.sleep(LOOK)

    # --- of the others ----------------------------------------------------------------------
    def next_order(self) -> "wire.Open | wire.Assignment | None":
        """Return the next order; None where the leader has ended."""
        self._taken += 1
        name = f"to-{self.ranks.rank}-{self._taken}"
        while not self.store.check([name]):
            if self.store.check(["end"]):
                return None
            time.sleep(LOOK)
        return cast("wire.Open | wire.Assignment", self._take(name))

    def report(self, message: object) -> None:
        """Send a message to the leader."""
        self._reported += 1
        self.store.set(f"from-{self.ranks.rank}-{self._reported}", pickle.dumps(message))

    def is_stopped(self) -> bool:
        """Whether the leader ends the stage."""
        return self.store.check(["stop"])

    def until_end(self) -> None:
        """Wait until the leader has ended."""
        while not self.store.check(["end"]):
            time.sleep(LOOK)

    def results(self) -> object:
        """Return what the leader has found; leave where it has failed."""
        content = bytes(self.store.get("end"))
        self.store.set(f"knows-{self.ranks.rank}", b"1")
        type(self).current = None
        if not content:
            _leave()
        return cast(object, pickle.loads(content))

    def _take(self, name: str) -> object | None:
        if not self.store.check([name]):
            return None
        content = bytes(self.store.get(name))
        self.store.delete_key(name)
        return cast(object, pickle.loads(content))


def _leave() -> NoReturn:
    """End this rank in silence: the leader says what is wrong."""
    raise SystemExit(CANNOT)


def _connect() -> "TorchStore":
    """Return the store of the job, which torchrun or the first rank keeps."""
    from torch.distributed.rendezvous import rendezvous  # pyright: ignore

    try:
        found = next(iter(rendezvous("env://", timeout=timedelta(seconds=PATIENCE))))
    except Exception as error:
        raise EngineError(
            f"the ranks of torchrun cannot find each other: {error}",
            hint="MASTER_ADDR and MASTER_PORT name a port that all machines can reach",
            slug="engine-rank",
        ) from error
    return found[0]


def _packed(results: object) -> bytes:
    """Return results for the others; None where they cannot be sent."""
    try:
        return pickle.dumps(results)
    except Exception:
        return pickle.dumps(None)


class RankSession:
    """One run of units, led by this process."""

    def __init__(self, job: Job, ranks: Ranks, channel: Channel, key: str) -> None:
        self.job, self.ranks, self.channel, self.key = job, ranks, channel, key
        self.own = OpenJob(job.spec, job.plan, job.working.scratch(), job.worker)
        self.stages = 0
        self.opened: set[int] = set()

    def run(self, stage: Stage) -> None:
        """Share the units that are missing; return when all are kept or given up."""
        self.stages += 1
        apart = f"{self.key}{self.stages}"
        desk = Desk.of(self.job, stage, self.ranks.world, apart=apart)
        busy = threading.Event()  # whether this process is at a task of its own
        others = threading.Thread(target=self._drive, args=(desk, busy), daemon=True)
        others.start()
        try:
            while others.is_alive():
                busy.set()
                task = desk.next()
                if task is not None:
                    self._do(task, desk)
                    continue
                busy.clear()
                time.sleep(LOOK)
        except BaseException as error:
            desk.end(error if isinstance(error, Exception) else None)
            self.channel.stop()
            others.join(GRACE)
            raise
        if desk.error is not None:
            raise desk.error

    def _do(self, task: wire.Assignment, desk: Desk) -> None:
        """Do a task in this process; what it has not done, because all stops, is dropped."""

        def take(message: object) -> None:
            desk.take(task, message, "rank 0")

        self.own.run(task, take, lambda: desk.stopped)
        desk.close(task)

    def _drive(self, desk: Desk, busy: threading.Event) -> None:
        """Give the others their tasks and take in what they report, until all is done."""
        tasks: dict[int, wire.Assignment] = {}
        ranks = range(1, self.ranks.world)
        try:
            while tasks or desk.tasks or busy.is_set():
                for rank in ranks:
                    if rank not in tasks and not desk.stopped and rank in self.opened:
                        task = desk.next()
                        if task is not None:
                            tasks[rank] = task
                            self.channel.give(rank, task)
                    self._hear(rank, tasks, desk)
                if desk.stopped and not tasks:
                    return
                time.sleep(LOOK)
        except BaseException as error:
            desk.end(error)
            self.channel.stop()

    def _hear(self, rank: int, tasks: dict[int, wire.Assignment], desk: Desk) -> None:
        """Take in all messages of a rank."""
        while (message := self.channel.hear(rank)) is not None:
            task = tasks.get(rank)
            if isinstance(message, wire.Ready):
                self.opened.add(rank)
                if task is not None:
                    desk.close(task)
                tasks.pop(rank, None)
            elif task is not None:
                desk.take(task, message, f"rank {rank}")
            elif isinstance(message, wire.Failed):
                raise message.unpack()
