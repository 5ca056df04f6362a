"""What a sweep found, weight by weight, from its readings alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from isoscope.lab.plain import Plain
from isoscope.lab.sweep.cells import LOSS, TASK, cell_of
from isoscope.lab.sweep.compare import differences, learnt
from isoscope.measures.difference import Difference
from isoscope.site import is_layer
from isoscope.types import Reading

PAIRED = "differences to weight 0 over the same seeds"
HOLM = "; p after Holm, for looking at {count}"
NO_SPREAD = "the same difference with every seed, so no interval and no p: weight {weights}"

Means = dict[str, dict[str, float]]  # by measure and site


@dataclass(frozen=True)
class Line(Plain):
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


def lines_of(readings: Sequence[Reading], metric: str, step: int | None = None) -> list[Line]:
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
    seeds = _seeds_of_all(cells, weights)
    values = {
        weight: [_one(cells[weight, seed], TASK, metric) for seed in seeds]
        for weight in weights
    }
    apart = differences(values) if 0.0 in values else {}
    start = _means([before])
    return [
        Line(
            weight=weight,
            seeds=seeds,
            values=values[weight],
            mean=fmean(values[weight]),
            sd=stdev(values[weight]) if len(seeds) > 1 else None,
            difference=apart.get(weight),
            loss=fmean(_one(cells[weight, seed], TASK, LOSS) for seed in seeds),
            before=start,
            after=_means([cells[weight, seed] for seed in seeds]),
        )
        for weight in weights
    ]


def _seeds_of_all(cells: dict[tuple[float, int], Any], weights: Sequence[float]) -> list[int]:
    """Return the seeds that every weight has been tried with."""
    seeds = sorted({seed for _, seed in cells})
    return [seed for seed in seeds if all((weight, seed) in cells for weight in weights)]


def _one(readings: Sequence[Reading], site: str, measure: str) -> float:
    return next(r.value for r in readings if (r.site, r.measure) == (site, measure))


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


def over_layers(means: Means, measure: str) -> float | None:
    """Return the mean of a measure over the layers; None where it could not be measured."""
    layers = [v for site, v in means.get(measure, {}).items() if is_layer(site)]
    return fmean(layers) if layers else None


def was_learnt(lines: Sequence[Line], baseline: float) -> bool | None:
    """Whether the runs without penalty beat the baseline; None where that cannot be told."""
    plain = [line for line in lines if line.weight == 0]
    return learnt(plain[0].values, baseline) if plain else None


def compared(lines: Sequence[Line]) -> list[str]:
    """Return how many weights were compared by chance, and which could not be."""
    apart = [(line.weight, line.difference) for line in lines if line.difference is not None]
    same = [f"{weight:g}" for weight, difference in apart if difference.p is None]
    count = len(apart) - len(same)
    return [
        PAIRED + (HOLM.format(count=count) if count else ""),
        *([NO_SPREAD.format(weights=", ".join(same))] if same else []),
    ]
