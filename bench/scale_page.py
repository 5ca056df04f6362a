"""The tables of docs/scale.md, the cost model behind them, and what it says of large runs."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
from markdown_table import table

RESULTS = Path(__file__).parent / "results" / "scale.json"
HOUR = 3600
# What a state holds, in bytes per number of width: see `rows_state` and `part_state`.
ROWS_LINEAR = 2048 * 4 + 643  # the sample of rows; means and directions of groups
PART_LINEAR = 32 * (48 + 5 * 8) * 4 + 2 * 32 * 8 + 2048 * 4 + 1024 * 8 + 256 * 16 * 4
PASSES = 5  # a state is written, read for its checksum; a merge reads two and writes one


@cache
def found() -> dict:
    """Return the results, empty where nothing was run."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def rows_state(width: int) -> int:
    """Return the bytes of the state of vectors: two halves of a covariance, and a sample."""
    return 8 * width * width + ROWS_LINEAR * width


def part_state(width: int) -> int:
    """Return the bytes that a site of a model has at most, for ordinary tokens or for sinks."""
    return 8 * width * width + PART_LINEAR * width


@dataclass(frozen=True)
class Costs:
    """Seconds of one core: of a number read, a product, a byte merged, a start, an end."""

    read: float
    product: float
    merge: float
    start: float
    end: float
    end_squared: float

    def run(self, rows: float, width: int, units: int) -> float:
        """Return the seconds of one core for so many rows."""
        merging = self.merge * units * rows_state(width)
        ending = self.end + self.end_squared * width**2
        return self.start + self.sums(rows, width) + merging + ending

    def sums(self, rows: float, width: int) -> float:
        """Return the seconds of reading and multiplying rows."""
        return rows * width * (self.read + self.product * width)


def fitted() -> Costs:
    """Fit the model on all runs but the last.

    A byte merged is what `merge` measured. Relative errors of reading and products are
    fitted: the smallest run counts as much as the largest.
    """
    merging = found()["merge"]
    merge = median(merging["ms per state"]) / 1000 / merging["bytes"]
    *runs, _ = found()["model"]["runs"]
    seconds = np.array(
        [run["units"] - merge * run["count"] * rows_state(run["width"]) for run in runs]
    )
    terms = np.array(
        [[run["rows"] * run["width"] ** power for power in (1, 2)] for run in runs]
    )
    read, product = np.linalg.lstsq(terms / seconds[:, None], np.ones(len(runs)), rcond=None)[0]
    ends = np.array([[1.0, run["width"] ** 2] for run in runs])
    end, squared = np.linalg.lstsq(ends, np.array([run["rest"] for run in runs]), rcond=None)[0]
    start = median(run["startup"] for run in runs)
    return Costs(*map(float, (read, product, merge, start, end, squared)))


def total(run: dict) -> float:
    """Return the seconds that a run took in all."""
    return run["startup"] + run["units"] + run["rest"]


def model() -> str:
    """Return the coefficients, and measured against predicted seconds."""
    if not {"merge", "model"} <= found().keys():
        return "Not run."
    costs = fitted()
    heads = ["part", "cost on one core"]
    rows = [
        ["read: a number, with checks and hashes", f"{1e9 * costs.read:.2f} ns"],
        ["product: a number times a number of its row", f"{1e12 * costs.product:.1f} ps"],
        ["merge: a byte of state", f"{1e9 * costs.merge:.2f} ns"],
        ["start-up", f"{costs.start:.2f} s"],
        [
            "end: readings and files",
            f"{costs.end:.2f} s + {1e6 * costs.end_squared:.2f} µs d²",
        ],
    ]
    lines = [
        [
            f"{run['rows']:,} x {run['width']}",
            "fitted" if number < len(found()["model"]["runs"]) - 1 else "**predicted**",
            f"{total(run):.2f}",
            f"{costs.run(run['rows'], run['width'], int(run['count'])):.2f}",
            f"{costs.run(run['rows'], run['width'], int(run['count'])) / total(run) - 1:+.0%}",
        ]
        for number, run in enumerate(found()["model"]["runs"])
    ]
    second = table(["rows", "", "measured, s", "model, s", "off by"], lines)
    return f"{table(heads, rows)}\n\n{second}\n\nMachine: {found()['model']['machine']}."


def speed() -> str:
    """Return rows per second of every engine."""
    if "speed" not in found():
        return "Not run."
    runs = found()["speed"]["runs"]
    rates = {name: [run["rate"] for run in each] for name, each in runs.items()}
    heads = ["engine", "million rows per second", "of two threads", "of one thread"]
    heads += ["start-up, s", "end, s"]
    rows = [
        [
            name,
            f"{median(rates[name]) / 1e6:.2f} ({_range([rate / 1e6 for rate in rates[name]])})",
            _ratios(rates[name], rates["here, 2 threads"]),
            _ratios(rates[name], rates["here, 1 thread"]),
            f"{median(run['startup'] for run in each):.1f}",
            f"{median(run['rest'] for run in each):.1f}",
        ]
        for name, each in runs.items()
    ]
    count = len(next(iter(runs.values())))
    note = f"Median of {count} turns, each of all engines one after the other"
    return f"{table(heads, rows)}\n\n{note}. Machine: {found()['speed']['machine']}."


def _range(numbers: list[float]) -> str:
    return f"{min(numbers):.2f} to {max(numbers):.2f}"


def _ratios(ours: list[float], theirs: list[float]) -> str:
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    return f"{median(ratios):.2f} ({_range(ratios)})"


def driver() -> str:
    """Return the memory of the driver."""
    rows = [
        [
            f"{int(units):,}",
            f"{run['peak'] / 1e6:.1f} MB",
            "" if run["per unit"] is None else f"{run['per unit']:.0f} bytes",
        ]
        for units, run in found().get("driver", {}).items()
    ]
    return (
        table(["units", "peak", "per unit beyond the first 100"], rows) if rows else "Not run."
    )


def merging() -> str:
    """Return the time of merging, by tenths of all states."""
    run = found().get("merge")
    if run is None:
        return "Not run."
    each = ", ".join(f"{ms:.1f}" for ms in run["ms per state"])
    return (
        f"{run['states']:,} states of width {run['width']} ({run['bytes'] / 1e6:.1f} MB each, "
        f"made on the fly): milliseconds per state, for each tenth of them in turn: {each}; "
        f"the sum of all at the end {run['total s']:.1f} s. Machine: {run['machine']}."
    )


@dataclass(frozen=True)
class Size:
    """A model of the Pythia suite, as its paper has it."""

    name: str
    parameters: float  # that take part in a product for every token: without the embedding
    all: float
    width: int
    layers: int


PYTHIA = (
    Size("70M", 0.0445e9, 0.070e9, 512, 6),
    Size("160M", 0.124e9, 0.162e9, 768, 12),
    Size("410M", 0.354e9, 0.405e9, 1024, 24),
    Size("1B", 0.909e9, 1.012e9, 2048, 16),
    Size("1.4B", 1.312e9, 1.415e9, 2048, 24),
    Size("2.8B", 2.646e9, 2.775e9, 2560, 32),
    Size("6.9B", 6.65e9, 6.857e9, 4096, 32),
    Size("12B", 11.59e9, 11.846e9, 5120, 36),
)
CHECKPOINTS, TOKENS = 154, 100_000
MACHINES, CORES = 64, 16
UNIT_ROWS, LARGE_UNIT = 196_608, 4_000_000
WEIGHT = 2  # bytes of a weight


def listening(costs: Costs, size: Size, tokens: float) -> float:
    """Return the seconds of one core for summing all sites: the stream, and the last norm."""
    return (size.layers + 2) * costs.sums(tokens, size.width)


def passes(costs: Costs, size: Size, tokens: float) -> float:
    """Return the seconds of one core for the passes of a model, at the rate of our products.

    A covariance is symmetric, so that half of its products are computed; of a pass all are.
    """
    return 2 * costs.product * size.parameters * tokens


def model_state(size: Size) -> int:
    """Return the bytes of the state of a model at most: all sites, each in two parts."""
    return 2 * (size.layers + 2) * part_state(size.width)


def paper() -> str:
    """Return what the model says of runs that nobody has made here."""
    if not {"merge", "model", "driver"} <= found().keys():
        return "Not run."
    heads = ["", "core-hours", "bytes moved", "state", "memory of the driver", "time"]
    rows = [_vectors(), _survey(), _series()]
    return table(heads, rows)


def _held(units: int, state: float) -> float:
    """Return the memory of a driver: of the process, of units, and of what it merges."""
    runs = found()["driver"]
    return runs["100"]["peak"] + runs["100000"]["per unit"] * units + 32e6 + 3 * state


def _vectors() -> list[str]:
    costs, rows, width = fitted(), 1e9, 1024
    workers, units = MACHINES * CORES, round(1e9 / UNIT_ROWS)
    state = rows_state(width)
    merging = costs.merge * units * state
    seconds = costs.sums(rows, width) + workers * costs.start + merging
    read, handed = rows * width * 4, PASSES * units * state
    wait = costs.sums(rows, width) / workers
    return [
        f"10⁹ x 1024 float32, {MACHINES} machines of {CORES} cores, {units:,} units",
        f"{seconds / HOUR:,.0f}",
        f"{read / 1e12:.1f} TB read, {handed / 1e9:,.0f} GB of states",
        f"{state / 1e6:.0f} MB",
        f"{_held(units, state) / 1e6:.0f} MB",
        f"{wait:.0f} s where storage gives {read / wait / MACHINES / 1e9:.1f} GB/s to each "
        f"machine; merging takes the driver {merging / 60:.0f} min",
    ]


def _survey() -> list[str]:
    costs, size, tokens = fitted(), PYTHIA[-1], 1e9
    units, state = round(tokens / LARGE_UNIT), model_state(size)
    summing = listening(costs, size, tokens)
    seconds = passes(costs, size, tokens) + summing + costs.merge * units * state
    moved = MACHINES * WEIGHT * size.all + PASSES * units * state
    gpus = 2 * size.parameters * tokens / (0.4 * 312e12) / HOUR
    place = part_state(size.width)
    return [
        f"Pythia-12B, 10⁹ tokens, {units} units of {LARGE_UNIT:,} tokens, {MACHINES} workers",
        f"{seconds / HOUR:,.0f}, of which sums {summing / HOUR:,.0f}; or {gpus:.0f} GPU-hours "
        "for the passes",
        f"{MACHINES * WEIGHT * size.all / 1e12:.1f} TB of weights, "
        f"{PASSES * units * state / 1e12:.1f} TB of states ({moved / 1e12:.1f} TB)",
        f"{state / 1e9:.0f} GB, {place / 1e6:.0f} MB a site and part",
        f"{_held(units, place) / 1e9:.1f} GB: one site at a time",
        f"merging {costs.merge * units * state / 60:.0f} min in the driver",
    ]


def _series() -> list[str]:
    costs = fitted()
    summing = sum(CHECKPOINTS * listening(costs, size, TOKENS) for size in PYTHIA)
    seconds = sum(CHECKPOINTS * passes(costs, size, TOKENS) for size in PYTHIA) + summing
    weights = CHECKPOINTS * sum(WEIGHT * size.all for size in PYTHIA)
    units = CHECKPOINTS * len(PYTHIA)
    records = 1e6  # of a checkpoint
    largest = model_state(PYTHIA[-1])
    return [
        f"{CHECKPOINTS} checkpoints x {len(PYTHIA)} sizes, {TOKENS:,} tokens each, "
        f"{units:,} units in {len(PYTHIA)} runs",
        f"{seconds / HOUR:,.0f}, of which sums {summing / HOUR:,.0f}",
        f"{weights / 1e12:.1f} TB of weights, {units * records / 1e9:.1f} GB of records",
        f"{largest / 1e9:.0f} GB in a worker of 12B, none is handed over",
        f"{_held(CHECKPOINTS, CHECKPOINTS * records / 3) / 1e6:.0f} MB",
        "as many workers as checkpoints fit into memory",
    ]


TABLES = {
    "scale-speed": speed,
    "scale-driver": driver,
    "scale-merge": merging,
    "scale-model": model,
    "scale-paper": paper,
}
