"""What a sweep found, weight by weight: records of cells, lines of weights, their tables."""

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite, sqrt
from statistics import fmean, stdev

import msgspec

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Record,
    RecordLayout,
    Results,
    Table,
    format_value,
    non_empty,
    numbers,
    plain,
    short,
    texts,
)
from isoscope.errors import StoreError, UndefinedError
from isoscope.measures.difference import NO_SPREAD as ROUNDING
from isoscope.measures.difference import Difference, holm, paired_difference
from isoscope.measures.interval import exact_quantile
from isoscope.site import is_layer
from isoscope.store import Origin, Run, load
from isoscope.types import Reading, SweepCell, SweepGrid, SweepWeight

LAYERS = "layers"  # in place of a site: the mean over all layers
TASK = "task"  # the site of how well the task is done
LOSS = "loss"
SHOWN = ("isoscore-debiased", "isoscore-star", "mean-cosine", "twonn")
MEANS = "geometry of held-out texts, mean over layers and seeds; by layer with --json"
PAIRED = "differences to weight 0 over the same seeds"
HOLM = "; p after Holm, for looking at {count}"
NO_SPREAD = "the same difference with every seed, so no interval and no p: weight {weights}"
NOT_LEARNT = (
    "not learnt: without penalty the task does not beat its baseline of {baseline:.3g} by "
    "more than its seeds vary (t test at 5 %), so the differences say nothing about it"
)
LEVEL = 0.05  # how often a task that was not learnt may pass for one that was
ONE_SEED = "one seed: no intervals, and whether the task was learnt cannot be determined"
Means = dict[str, dict[str, float]]  # by measure and site


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a cell, as far as the sweep as a whole needs it."""

    weight: float | None = None  # None for the model as it came
    seed: int | None = None
    diverged: str | None = None  # why, where it did
    readings: list[Reading]


@dataclass(frozen=True)
class SweepLine(Record):
    """One weight: how the task went with each seed, and what became of the geometry."""

    weight: float
    seeds: list[int]
    values: list[float]  # the metric, by seed
    mean: float
    sd: float | None
    difference: Difference | None  # to weight 0 over the same seeds; None of weight 0 itself
    loss: float  # of held-out examples, mean over seeds
    before: Means
    after: Means  # mean over seeds


def read_sweep(path: str | os.PathLike[str]) -> Results[SweepLine]:
    """Return one line per weight of a sweep that was saved."""
    run = load(path)
    name = run.origin.model.model if run.origin.model is not None else ""
    with _only_cells(run):
        return sweep_results(run.readings, run.origin, name)


def sweep_results(
    readings: Sequence[Reading], origin: Origin, model: str = ""
) -> Results[SweepLine]:
    """Return one line per weight, from the readings and the origin of a run."""
    task, settings = origin.sweep()
    lines = lines_of(readings, task.metric)
    learnt = is_learnt(lines, task.baseline)
    diverged = list(task.diverged)
    remarks = [
        *task.remarks,
        *([divergence_remark(diverged)] if diverged else []),
        *([NOT_LEARNT.format(baseline=task.baseline)] if learnt is False else []),
        *([ONE_SEED] if learnt is None else comparison_remarks(lines)),
    ]
    shared = {
        "model": model or (origin.model.model if origin.model is not None else ""),
        "task": task.name,
        "penalty": settings.penalty.name,
        "metric": task.metric,
        "baseline": task.baseline,
        "learnt": learnt,
        "diverged": diverged,
        "steps": settings.steps,
        "seeds": len(settings.seeds),
    }
    return Results(lines, SWEEP_LINES, remarks=remarks, shared=shared)


def lines_of(
    readings: Sequence[Reading], metric: str, step: int | None = None
) -> list[SweepLine]:
    """Return a line for each weight, after the last step or after another one."""
    last = max((each.step or 0 for each in readings), default=0) if step is None else step
    cells: dict[tuple[float, int], list[Reading]] = {}
    before: list[Reading] = []
    for each in readings:
        cell = cell_of(each.group)
        if cell is None:
            before.append(each)
        elif each.step == last:
            cells.setdefault(cell, []).append(each)
    weights = sorted({weight for weight, _ in cells})
    every = sorted({seed for _, seed in cells})
    seeds = [seed for seed in every if all((weight, seed) in cells for weight in weights)]
    values = {
        weight: [_value(cells[weight, seed], TASK, metric) for seed in seeds]
        for weight in weights
    }
    apart = differences(values) if 0.0 in values else {}
    start = _means([before])
    return [
        SweepLine(
            weight=weight,
            seeds=seeds,
            values=values[weight],
            mean=fmean(values[weight]),
            sd=stdev(values[weight]) if len(seeds) > 1 else None,
            difference=apart.get(weight),
            loss=fmean(_value(cells[weight, seed], TASK, LOSS) for seed in seeds),
            before=start,
            after=_means([cells[weight, seed] for seed in seeds]),
        )
        for weight in weights
    ]


def _value(readings: Sequence[Reading], site: str, measure: str) -> float:
    for each in readings:
        if (each.site, each.measure) == (site, measure):
            return each.value
    raise LookupError(f"no {measure} of a cell")


def _means(cells: Sequence[Sequence[Reading]]) -> Means:
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        for each in cell:
            if each.site != TASK:
                found.setdefault(each.measure, {}).setdefault(each.site, []).append(each.value)
    return {
        measure: {site: fmean(values) for site, values in sites.items()}
        for measure, sites in found.items()
    }


def differences(by_weight: Mapping[float, Sequence[float]]) -> dict[float, Difference]:
    """Return the paired difference of each weight to weight 0, corrected for their number."""
    found = {
        weight: paired_difference(values, by_weight[0.0])
        for weight, values in by_weight.items()
        if weight != 0
    }
    corrected = holm([each.p for each in found.values()])
    return {
        weight: replace(each, p_holm=p)
        for (weight, each), p in zip(found.items(), corrected, strict=True)
    }


def is_learnt(lines: Sequence[SweepLine], baseline: float) -> bool | None:
    """Whether the runs without penalty beat the baseline, by a one-sided t test at 5 %.

    None where there is one seed, which cannot tell.
    """
    values = next((line.values for line in lines if line.weight == 0), [])
    if len(values) < 2:
        return None
    error = stdev(values) / sqrt(len(values))
    reach = exact_quantile(len(values) - 1, outside=2 * LEVEL) * error
    return fmean(values) - baseline > reach + ROUNDING * abs(baseline)


def comparison_remarks(lines: Sequence[SweepLine]) -> list[str]:
    """Return how many weights were compared by chance, and which could not be."""
    apart = [line for line in lines if line.difference is not None]
    same = [
        f"{line.weight:g}" for line in apart if line.difference and line.difference.p is None
    ]
    count = len(apart) - len(same)
    return [
        PAIRED + (HOLM.format(count=count) if count else ""),
        *([NO_SPREAD.format(weights=", ".join(same))] if same else []),
    ]


def group_of(weight: float, seed: int) -> str:
    """Return the name of a cell among readings.

    >>> group_of(-0.5, 3)
    'weight=-0.5,seed=3'
    """
    return f"weight={weight!r},seed={seed}".replace(".0,", ",")


def cell_of(group: str) -> tuple[float, int] | None:
    """Return weight and seed of a cell, or None for the model as it came.

    >>> cell_of("weight=-0.5,seed=3")
    (-0.5, 3)
    """
    if not group:
        return None
    parts = dict(part.split("=", 1) for part in group.split(","))
    return float(parts["weight"]), int(parts["seed"])


def diverged_cells(records: Sequence[CellRecord]) -> list[str]:
    """Return the names of the cells that diverged."""
    return [
        group_of(each.weight, each.seed)
        for each in records
        if each.diverged is not None and each.weight is not None and each.seed is not None
    ]


def check_comparable(
    diverged: Sequence[str], weights: Sequence[float], seeds: Sequence[int]
) -> None:
    """Refuse a sweep in which nothing can be compared."""
    lost = {cell_of(group) for group in diverged}
    left = {
        weight: {seed for seed in seeds if (weight, seed) not in lost} for weight in weights
    }
    finished = {weight: found for weight, found in left.items() if found}
    if not left[0.0]:
        raise _nothing("without penalty the loss became NaN with every seed", "lower")
    if len(finished) < 2:
        raise _nothing("the loss became NaN with every weight but 0", "take smaller weights or")
    if not set.intersection(*finished.values()):
        raise _nothing(
            "the loss became NaN with every seed, of one weight or another",
            "drop the weights that diverge or",
        )


def _nothing(problem: str, remedy: str) -> UndefinedError:
    return UndefinedError(
        problem,
        hint=f"{remedy} --learning-rate, in another folder; what was found is kept",
        slug="sweep-loss",
    )


def divergence_remark(diverged: Sequence[str]) -> str:
    """Return a remark that names the cells, the seeds of a weight together.

    >>> divergence_remark(["weight=5,seed=0", "weight=5,seed=3", "weight=-1,seed=0"])
    'diverged and excluded: weight 5 with seed 0, 3; weight -1 with seed 0'
    """
    seeds: dict[float, list[str]] = {}
    for weight, seed in filter(None, map(cell_of, diverged)):
        seeds.setdefault(weight, []).append(str(seed))
    return "diverged and excluded: " + "; ".join(
        f"weight {weight:g} with seed {', '.join(found)}" for weight, found in seeds.items()
    )


@contextmanager
def _only_cells(run: Run) -> Generator[None]:
    """Translate what is raised where a run lacks what every cell of a sweep has."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"expected the cells of a sweep in {run.path.name!r}, got others: {error!r}"[:300],
            hint="sweep again",
            slug="store-damaged",
        ) from error


def grid_of(run: Run) -> SweepGrid:
    """Return a sweep as a page draws it; raise where the run has no cells of one."""
    with _only_cells(run):
        lines = sweep_results(run.readings, run.origin)
        task, settings = run.origin.sweep()
        return SweepGrid(
            site="task",
            variant="all",
            task=task.name,
            metric=task.metric,
            penalty=settings.penalty.name,
            baseline=task.baseline,
            learnt=is_learnt(lines, task.baseline),
            weights=tuple(
                SweepWeight(
                    weight=float(line.weight),
                    mean=line.mean,
                    sd=_finite(line.sd),
                    seeds=len(line.seeds),
                    value=_finite(line.difference and line.difference.value),
                    low=_finite(line.difference and line.difference.low),
                    high=_finite(line.difference and line.difference.high),
                    p=_finite(line.difference and line.difference.p_holm),
                )
                for line in lines
            ),
            cells=tuple(_grid_cells(run, task.metric)),
        )


def _grid_cells(run: Run, metric: str) -> Iterator[SweepCell]:
    """Yield every measure and site of the cells after the last step, and before the first."""
    last = max(each.step or 0 for each in run.readings)
    metrics = {
        cell: each.value
        for each in run.readings
        if (each.site, each.measure, each.step) == (TASK, metric, last)
        and (cell := cell_of(each.group)) is not None
    }
    found = list(_site_cells(run, metrics, last))
    layers: dict[tuple[str, float, int | None, float | None], list[float]] = {}
    for each in found:
        if is_layer(each.site):
            key = (each.measure, each.weight, each.seed, each.metric)
            layers.setdefault(key, []).append(each.geometry)
    for (measure, weight, seed, value), over in layers.items():
        yield SweepCell(measure, LAYERS, weight, seed, fmean(over), value)
    yield from found


def _site_cells(
    run: Run, metrics: Mapping[tuple[float, int], float], last: int
) -> Iterator[SweepCell]:
    for each in run.readings:
        cell = cell_of(each.group)
        if each.measure not in SHOWN or each.site == TASK:
            continue
        if cell is None:
            yield SweepCell(each.measure, each.site, 0.0, None, each.value, None)
        elif each.step == last and cell in metrics:
            weight, seed = cell
            yield SweepCell(each.measure, each.site, weight, seed, each.value, metrics[cell])


def _finite(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(value)


def _tables(lines: Results[SweepLine]) -> tuple[Table, ...]:
    names = ("model", "task", "penalty", "steps", "seeds")
    caption = plain(", ".join(f"{name} {lines.shared[name]}" for name in names))
    if not lines:
        return (Table(caption, ()),)
    apart = [
        ("", "")
        if line.difference is None
        else format_value(line.difference.value, line.difference.low, line.difference.high)
        for line in lines
    ]
    found = (line.difference.p_holm if line.difference else None for line in lines)
    chances = ("" if p is None else ("<0.001" if p < 0.001 else f"{p:.3f}") for p in found)
    columns = (
        Column("weight", tuple(f"{line.weight:g}" for line in lines)),
        Column(
            str(lines.shared["metric"]),
            tuple(
                f"{line.mean:.4f}" + (f" ±{line.sd:.4f}" if line.sd is not None else "")
                for line in lines
            ),
        ),
        Column("difference", tuple(value for value, _ in apart)),
        Column("95 % interval", tuple(interval for _, interval in apart)),
        Column("p (Holm)", tuple(chances)),
        Column("loss", tuple(f"{line.loss:.3f}" for line in lines)),
    )
    stages = [lines[0].before, *(line.after for line in lines)]
    geometry = (
        Column("weight", ("before", *(f"{line.weight:g}" for line in lines))),
        *(
            Column(name, tuple(short(over_layers(stage, name)) for stage in stages))
            for name in SHOWN
            if name in stages[0]
        ),
    )
    return (
        Table(caption, non_empty(columns), tuple(map(plain, lines.remarks))),
        Table(MEANS, geometry),
    )


def over_layers(means: Means, measure: str) -> float | None:
    """Return the mean of a measure over the layers; None where it could not be measured."""
    layers = [v for site, v in means.get(measure, {}).items() if is_layer(site)]
    return fmean(layers) if layers else None


SWEEP_LINES = RecordLayout(
    name="weights",
    tables=_tables,
    to_dict=SweepLine.to_dict,
    fields=(
        *texts("model", "task", "penalty", "metric"),
        Field("baseline", "number"),
        Field("learnt", "flag", optional=True),
        Field("diverged", "json"),
        Field("steps", "integer"),
        Field("seeds", "integers"),
        Field("weight", "number"),
        Field("values", "numbers"),
        *numbers("mean", "sd"),
        Field("difference", "json"),
        Field("loss", "number"),
        Field("before", "json"),
        Field("after", "json"),
    ),
)
