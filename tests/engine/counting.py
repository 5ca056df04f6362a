"""A small spec whose units do what files in a folder say: wait, die, fail, print, and more."""

import os
import signal
import time
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from isoscope.accumulate import ArrayBlock, Moments, Tally
from isoscope.accumulate.survey import Survey
from isoscope.engine.plan import Plan, Unit
from isoscope.errors import RowError, UndefinedError
from isoscope.study.option import about
from isoscope.study.run import Runnable

SITE = ("rows", "all")


class Number(Unit, frozen=True, tag=True):
    """One unit."""

    number: int


class CountPlan(Plan, frozen=True, kw_only=True):
    """Numbers, in one stage or in two."""

    stages: tuple[tuple[Number, ...], ...]


class CountSpec(Runnable[list], frozen=True, kw_only=True):
    """Records of units."""

    command: ClassVar[str] = "count"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = CountPlan

    orders: Annotated[str, about("The folder of orders.", "F", argument=True, path=True)]
    units: Annotated[int, about("Units of a stage.", "N", least=0)] = 4
    stages: Annotated[int, about("Stages.", "N", least=1)] = 1
    given: Annotated[str | None, about("Anything.", "A", path=True, live=True)] = None

    def open(self, notify, live=None):
        return CountWorker(self)


class CutSpec(CountSpec, frozen=True, kw_only=True):
    """Records of units whose size is an option."""

    command: ClassVar[str] = "cut"

    unit: Annotated[int | None, about("Size of a unit.", "N", least=1)] = None


class SumSpec(CountSpec, frozen=True, kw_only=True):
    """Summaries of units."""

    command: ClassVar[str] = "sum"
    keeps: ClassVar[str] = "summaries"


class HeldSpec(SumSpec, frozen=True, kw_only=True):
    """Summaries of units, of a worker that would hold a model."""

    command: ClassVar[str] = "held"
    stays_open: ClassVar[bool] = True


class TroubledError(Exception):
    """An error that does not survive pickling."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class CountWorker:
    def __init__(self, spec):
        self.spec, self.orders = spec, Path(spec.orders)
        self.log("open")
        self.obey("open", None, None)

    def log(self, *words):
        with (self.orders / "log").open("a") as file:
            file.write(" ".join(map(str, (os.getpid(), *words))) + "\n")

    def content(self):
        return {"vectors": (self.orders / "content").read_text()}

    def plan(self):
        units = tuple(Number(number) for number in range(self.spec.units))
        return CountPlan(stages=(units,) * self.spec.stages, threads=1)

    def enter(self, plan, stage, before):
        self.stage = stage
        self.before = 0 if before is None else rows_of(before.survey_of(SITE[0]))

    def run(self, unit, scratch, ticks):
        where, self.sibling = f"{self.stage + 1}-{unit.number}", unit.number ^ 1
        self.log("begin", where)
        if (pause := self.orders / "pause").exists():
            time.sleep(float(pause.read_text()))
        self.obey(where, scratch, ticks)
        self.log("end", where)
        if self.spec.keeps == "records":
            return {"stage": self.stage, "number": unit.number, "value": np.float64("inf")}
        rng = np.random.default_rng(unit.number)
        rows = rng.normal(size=(unit.number + 2, 3)) + self.before
        survey = Survey(seen={"rows": len(rows)})
        survey.update(SITE, (Tally, Moments), ArrayBlock(rows))
        return survey

    def obey(self, where, scratch, ticks):
        """Do what the files that end in this place say; `once` files are removed first."""
        for path in sorted(self.orders.glob(f"*@{where}")):
            order, _, _ = path.name.partition("@")
            if order.startswith("once-"):
                path.unlink()
            getattr(self, order.removeprefix("once-"))(path, scratch, ticks)

    def wait(self, path, scratch, ticks):
        while path.exists():
            time.sleep(0.01)

    def die(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)

    def fail(self, *_):
        raise UndefinedError("there is no such number", hint="take another", slug="undefined")

    def bad_row(self, *_):
        raise RowError("row 3 holds NaN", hint="drop it", slug="row-nan")

    def bug(self, *_):
        raise ZeroDivisionError("a bug")

    def trouble(self, *_):
        raise TroubledError("one", "two")

    def noise(self, *_):
        print("a library prints", flush=True)
        os.write(1, b"\x05\x00\x00\x00\x00\x00\x00\x00noise\n" * 100)
        os.system("echo a process that a library starts")

    def grow(self, *_):
        """Take memory until somebody ends it: the limit of this process, or Ray."""
        kept = []
        for _ in range(200):
            kept.append(np.ones(4_000_000))  # 32 MB
            time.sleep(0.02)

    def limited(self, *_):
        """Take more memory than this process may have."""
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), limits[1]))
        try:
            self.grow()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)

    def full(self, *_):
        """Let this process write no more than a few bytes to any file, as on a full disk."""
        import resource

        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))

    def flip(self, path, scratch, ticks):
        """Flip a bit of the result that waits for the one of this unit."""
        self._damage(scratch, lambda content: bytes([content[0] ^ 4]) + content[1:])

    def cut(self, path, scratch, ticks):
        """Cut the end of that result."""
        self._damage(scratch, lambda content: content[:-9])

    def _damage(self, scratch, change):
        stage = scratch.path.parents[1] / f"stage-{self.stage + 1}"
        name = f"node-0-{self.sibling}-*"
        while not (found := list(stage.glob(name))):
            time.sleep(0.01)
        found[0].write_bytes(change(found[0].read_bytes()))
        self.log("damage", found[0].name)

    def note(self, path, scratch, ticks):
        ticks.at(1)
        ticks.note(path.read_text())

    def learn(self, path, scratch, ticks):
        """Leave something in the scratch, then wait; go on if it is there already."""
        kept = scratch.path / "checkpoint"
        if kept.exists():
            self.log("found", kept.read_text())
            return
        kept.write_text("half")
        self.log("left", "half")
        time.sleep(600)

    def finish(self, done):
        self.log("finish")
        self.obey("finish", None, None)
        found = done.found
        if self.spec.keeps == "records":
            return [record for records in found for record in records]
        if done.target is not None:
            save_run(done)
        return [rows_of(state.survey_of(SITE[0])) for state in found]


def rows_of(survey):
    return survey.held[SITE][Tally].count if SITE in survey.held else 0


def save_run(done):
    from isoscope.display import READINGS, Results
    from isoscope.store import new_origin, save

    source = {"name": "a", "fingerprint": "f", "rows": 1, "dtype": "float64", "width": 3}
    origin = new_origin(sources=[source], settings={}, seed=0)
    readings = Results([], READINGS, left_out=list(done.notes))
    save(done.target, done.found[-1], readings, origin, {}, done.overwrite, resume=True)
