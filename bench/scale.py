"""What a large run costs: engines beside each other, memory of the driver, merging, a model.

    python bench/scale.py rows F    4,000,000 x 256 float32 in 16 files, to the folder F
    python bench/scale.py speed F   them under every engine
    python bench/scale.py driver    memory of the driver for 100 to 100,000 units
    python bench/scale.py merge     10,000 states of width 768, made on the fly
    python bench/scale.py model     a cost model fitted on three sizes, and a fourth

Each part runs in a few minutes on two cores and writes to bench/results/scale.json. Runs are
processes of their own; what is measured begins where the first unit begins, and start-up is
given apart.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from isoscope.accumulate import ArrayBlock, Tally
from isoscope.accumulate.survey import Survey
from isoscope.engine.plan import Plan, Unit
from isoscope.study.option import about
from isoscope.study.run import Runnable

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "scale.json"
ENGINES = {  # name, engine, workers, threads of a unit
    "here, 2 threads": ("here", 1, 2),
    "here, 1 thread": ("here", 1, 1),
    "pool, 2 workers": ("pool", 2, 1),
    "ray, 2 workers": ("ray", 2, 1),
}
REPEATS = 3


def write_rows(folder: Path, rows: int, width: int, files: int) -> None:
    """Write rows of decaying variance about a mean that is not zero."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    scale = (np.arange(1, width + 1) ** -0.5).astype(np.float32)
    for number in range(files):
        part = rng.standard_normal((rows // files, width), dtype=np.float32) * scale + 0.05
        np.save(folder / f"part-{number:02}.npy", part.astype(np.float32))


def alone(*words: object) -> dict:
    """Run one measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def one(folder: str, engine: str, workers: str, threads: str) -> dict:
    """Measure a folder; return start-up, seconds of units, rows per second, and all."""
    import isoscope as iso

    if engine == "ray":
        import isoscope.engine.ray as module

        module.LOOK = 0.05  # or the first report would be half a second late
    seen: list[tuple[float, int]] = []
    begun: list[float] = []
    status_of: list = []

    def watch(status):
        now = time.perf_counter()
        status_of[:] = [status]
        if status.workers or status.done:
            begun[:] = begun or [now]
            seen.append((now, status.done))

    with tempfile.TemporaryDirectory() as place:
        start = time.perf_counter()
        iso.measure(
            folder,
            engine=engine,
            workers=int(workers),
            threads=int(threads),
            output=Path(place) / "run",
            status=watch,
        )
        end = time.perf_counter()
        state = (Path(place) / "run" / "state.safetensors").stat().st_size
    (first, before), (last, done) = seen[0], seen[-1]
    return {
        "startup": first - start,
        "units": last - first,
        "rate": (done - before) / (last - first),
        "rest": end - last,
        "count": status_of[0].units,
        "state": state,
    }


def rows(folder: str) -> dict:
    """Write the rows of `speed`, which takes a minute that need not be a quiet one."""
    write_rows(Path(folder), 4_000_000, 256, 16)
    return {}


def speed(folder: str, repeats: str = str(REPEATS)) -> dict:
    """Return rows per second of every engine, of some runs in turns."""
    found = {name: [] for name in ENGINES}
    alone("one", folder, "here", 1, 2)  # files are in memory from here on
    for _ in range(int(repeats)):
        for name, words in ENGINES.items():
            found[name].append(alone("one", folder, *words))
            print(name, found[name][-1], file=sys.stderr, flush=True)
    return {"machine": machine(), "runs": found}


def machine() -> str:
    """Return what the figures are of."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":")[1].strip() for line in lines if "model name" in line), "?")
    python = sys.version.split()[0]
    return f"{name}, {os.cpu_count()} cores, NumPy {np.__version__}, Python {python}"


class Small(Unit, frozen=True, tag=True):
    """One simulated unit."""

    number: int


class SmallPlan(Plan, frozen=True, kw_only=True):
    """Simulated units."""

    stages: tuple[tuple[Small, ...], ...]


class SmallSpec(Runnable[int], frozen=True, kw_only=True):
    """Units that cost next to nothing."""

    command: ClassVar[str] = "small"
    plans: ClassVar[type[Plan]] = SmallPlan
    units: Annotated[int, about("Units.", "N")] = 100

    def open(self, notify, live=None):
        """Return a worker."""
        return SmallWorker(self.units)


class SmallWorker:
    """Counts two rows for each unit."""

    def __init__(self, units):
        self.units = units

    def content(self):
        """Return what stands for the rows."""
        return {"rows": "simulated"}

    def plan(self):
        """Return all units."""
        return SmallPlan(stages=(tuple(map(Small, range(self.units))),))

    def enter(self, *_):
        """Begin a stage."""

    def run(self, unit, scratch, ticks):
        """Return the sums of a unit."""
        survey = Survey(seen={"rows": 2})
        survey.update(("rows", "all"), (Tally,), ArrayBlock(np.ones((2, 2))))
        return survey

    def finish(self, done):
        """Return the number of rows."""
        return done.state.survey_of("rows").held["rows", "all"][Tally].count


def drive(units: str, engine: str) -> dict:
    """Do simulated units in a pool; return the peak of the driver's memory in bytes."""
    import scale  # as the workers import it

    from isoscope.study.run import run
    from isoscope.study.spec import Execution

    with tempfile.TemporaryDirectory() as place:
        start = time.perf_counter()
        where = Execution(engine=engine, workers=2, output=str(Path(place) / "run"))
        assert run(scale.SmallSpec.of(units=int(units)), where) == 2 * int(units)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"peak": peak, "seconds": seconds}


def driver() -> dict:
    """Return the driver's memory per unit, from the smallest to the largest run."""
    found = {}
    for units in (100, 1_000, 10_000, 100_000):
        found[units] = alone("drive", units, "pool")
        print(units, found[units], file=sys.stderr, flush=True)
    first = found[100]["peak"]
    for units, run in found.items():
        run["per unit"] = (run["peak"] - first) / (units - 100) if units > 100 else None
    return {str(units): run for units, run in found.items()}


def merge(states: str = "10000", width: str = "768") -> dict:
    """Return milliseconds per state, of every tenth of many states that are merged."""
    from isoscope.accumulate import Moments
    from isoscope.store.keepers import SummaryKeeper

    count, d = int(states), int(width)
    place = ("rows", "all")
    rows = np.random.default_rng(0).normal(size=(1024, d))
    survey = Survey(seen={"rows": len(rows)})
    survey.update(place, (Tally, Moments), ArrayBlock(rows))
    meta, arrays = survey.to_state()
    parts, since = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        keeper = SummaryKeeper(count, Path(folder), id="bench")
        for unit in range(count):
            state = Survey.from_state(meta, {name: a.copy() for name, a in arrays.items()})
            begin = time.perf_counter()
            keeper.add(unit, state)
            since += time.perf_counter() - begin
            if (unit + 1) % (count // 10) == 0:
                parts.append(1000 * since / (count // 10))
                since = 0.0
                print(parts[-1], file=sys.stderr, flush=True)
        begin = time.perf_counter()
        total = keeper.total().survey_of("rows").held[place][Tally].count
        end = time.perf_counter() - begin
    assert total == count * len(rows)
    size = sum(array.nbytes for array in arrays.values())
    return {
        "machine": machine(),
        "states": count,
        "width": d,
        "bytes": size,
        "ms per state": parts,
        "total s": end,
    }


SIZES = ((1_000_000, 128), (1_000_000, 256), (400_000, 768))  # rows, width: fitted
FOURTH = (800_000, 512)  # predicted


def model() -> dict:
    """Fit the seconds of a run on three sizes, and predict a fourth."""
    runs = []
    with tempfile.TemporaryDirectory() as place:
        for count, width in (*SIZES, FOURTH):
            folder = Path(place) / f"{count}x{width}"
            write_rows(folder, count, width, 8)
            alone("one", folder, "here", 1, 1)
            tries = [alone("one", folder, "here", 1, 1) for _ in range(REPEATS)]
            middle = {key: float(np.median([run[key] for run in tries])) for key in tries[0]}
            runs.append({"rows": count, "width": width, **middle})
            print(runs[-1], file=sys.stderr, flush=True)
            shutil.rmtree(folder)
    return {"machine": machine(), "runs": runs}


PARTS = {"speed": speed, "driver": driver, "merge": merge, "model": model}
ALONE = {"one": one, "drive": drive, "rows": rows}


def main(name: str, *words: str) -> None:
    if name in ALONE:
        print(json.dumps(ALONE[name](*words)))
        return
    found = PARTS[name](*words)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(known | {name: found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main(*sys.argv[1:])
