"""Effects of ingredients: contrasts of a factorial experiment, with the error of its seeds.

A cell is one choice of level for every factor, trained from several seeds. An effect is a
weighted sum of cell means:

- of a factor with two levels, the second minus the first, averaged over all other factors;
- of a factor of numbers, such as the width, the slope per doubling;
- of a pair, by how much the effect of the first grows from one level of the second to the next.

Its error is pure: it comes from seeds within cells and from nothing else. Each cell adds its
own variance, so cells need not vary alike; the degrees of freedom are Welch's (1947), which are
those of all cells together where they do, and those of one cell where it alone varies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from math import floor, log2, sqrt

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.measures.difference import holm
from isoscope.measures.interval import exact_quantile, two_sided
from isoscope.types import Array

Cell = tuple[str, ...]  # a level of each factor, in their order
NONE = 1e-12  # of the values: a spread below it is rounding


@dataclass(frozen=True)
class Factor:
    """An ingredient and its levels, the usual one first."""

    name: str
    levels: tuple[str, ...]

    @property
    def weights(self) -> Array:
        """What each level counts in the effect: it sums to zero."""
        if all(level.isdigit() for level in self.levels):
            x = np.array([log2(int(level)) for level in self.levels])
            x -= x.mean()
            return x / (x @ x)
        found = np.zeros(len(self.levels))
        found[0], found[-1] = -1.0, 1.0
        return found


@dataclass(frozen=True)
class Contrast:
    """An effect before anything is known: a weight for every cell that counts."""

    name: str  # of a factor, or of two with a colon between them
    weights: Mapping[Cell, float]
    complete: bool = True  # whether no combination had to be skipped


@dataclass(frozen=True)
class Estimate:
    """An effect, its 95 % interval, and the chance of one as large if there were none."""

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    freedom: int | None = None


def contrasts(factors: Sequence[Factor], cells: Sequence[Cell]) -> tuple[Contrast, ...]:
    """Return all main effects and two-way interactions that the cells allow.

    A combination of the other factors counts where it has all the cells that are compared; so
    a cell that is missing costs one combination and not the effect.
    """
    return _contrasts(tuple(factors), frozenset(cells))


@cache
def _contrasts(factors: tuple[Factor, ...], there: frozenset[Cell]) -> tuple[Contrast, ...]:
    numbers = range(len(factors))
    chosen = [(n,) for n in numbers] + list(combinations(numbers, 2))
    found = (_contrast(factors, each, there) for each in chosen)
    return tuple(each for each in found if each is not None)


def _contrast(
    factors: Sequence[Factor], chosen: tuple[int, ...], there: frozenset[Cell]
) -> Contrast | None:
    rest = [n for n in range(len(factors)) if n not in chosen]
    parts: list[dict[Cell, float]] = []
    whole = 0
    for others in product(*(factors[n].levels for n in rest)):
        whole += 1
        part: dict[Cell, float] = {}
        for places in product(*(range(len(factors[n].levels)) for n in chosen)):
            weight = float(
                np.prod([factors[n].weights[i] for n, i in zip(chosen, places, strict=True)])
            )
            if not weight:
                continue
            levels = dict(zip(rest, others, strict=True))
            levels |= {n: factors[n].levels[i] for n, i in zip(chosen, places, strict=True)}
            part[tuple(levels[n] for n in range(len(factors)))] = weight
        if part.keys() <= there:
            parts.append(part)
    if not parts:
        return None
    weights = {cell: w / len(parts) for part in parts for cell, w in part.items()}
    name = ":".join(factors[n].name for n in chosen)
    return Contrast(name, weights, len(parts) == whole)


@dataclass(frozen=True)
class Summary:
    """Seeds of every cell: their number, mean and variance."""

    places: Mapping[Cell, int]
    count: Array
    mean: Array
    variance: Array  # 0 of one seed
    size: float  # the largest value there is

    @classmethod
    def of(cls, values: Mapping[Cell, Sequence[float]]) -> "Summary":
        """Summarise the values of all cells."""
        count = np.array([len(each) for each in values.values()])
        whole = np.concatenate([np.asarray(each, dtype=float) for each in values.values()])
        cells = np.repeat(np.arange(len(count)), count)
        mean = np.bincount(cells, whole) / count
        squares = np.bincount(cells, (whole - mean[cells]) ** 2)
        variance = squares / np.maximum(count - 1, 1)
        places = {cell: place for place, cell in enumerate(values)}
        return cls(places, count, mean, variance, float(np.abs(whole).max()))


def estimate(contrast: Contrast, seen: Summary) -> Estimate:
    """Return an effect from the seeds of every cell."""
    places = [seen.places[cell] for cell in contrast.weights]
    weights = np.array(list(contrast.weights.values()))
    counts, spread = seen.count[places], seen.variance[places]
    value = float(weights @ seen.mean[places])
    free = counts - 1
    several = free > 0
    if not several.any():
        return Estimate(value)
    # A cell of one seed varies as the others do on average.
    pooled = float(free @ spread / free.sum())
    parts = weights**2 * np.where(several, spread, pooled) / counts
    variance = float(parts.sum())
    if variance <= (NONE * seen.size) ** 2:
        return Estimate(value)
    shares = parts**2 / (np.where(several, free, free.sum()) + 2)
    freedom = variance**2 / float(shares.sum()) - 2
    whole = max(1, min(floor(freedom + 1e-9), int(free.sum())))
    error = sqrt(variance)
    reach = _quantile(whole) * error
    return Estimate(
        value, value - reach, value + reach, two_sided(value / error, whole), None, whole
    )


_quantile = cache(exact_quantile)  # there are few degrees of freedom and many effects


Outcome = tuple[str, str, str]  # measure, site, variant
Table = Mapping[Outcome, Mapping[Cell, Sequence[float]]]


def analyse(
    factors: Sequence[Factor], table: Table
) -> list[tuple[Outcome, Contrast, Estimate]]:
    """Return all effects on all outcomes; p is corrected for all of them together."""
    found = [
        (outcome, contrast, estimate(contrast, seen))
        for outcome, seen in ((key, Summary.of(values)) for key, values in table.items())
        for contrast in contrasts(factors, list(seen.places))
    ]
    corrected = holm([each.p for _, _, each in found])
    return [
        (outcome, contrast, replace(each, p_holm=p))
        for (outcome, contrast, each), p in zip(found, corrected, strict=True)
    ]


def family_wise_error(
    factors: Sequence[Factor], table: Table, permutations: int, seed: int = 0
) -> float:
    """Return how often permuted labels give an effect with a corrected p below 0.05.

    Runs are dealt to cells anew, all outcomes of a run together.
    """
    rng = np.random.default_rng([seed, 48])
    hits = sum(
        any(each.p_holm is not None and each.p_holm < 0.05 for _, _, each in found)
        for found in (analyse(factors, _permuted(table, rng)) for _ in range(permutations))
    )
    return hits / permutations


def _permuted(table: Table, rng: np.random.Generator) -> Table:
    first = next(iter(table.values()))
    sizes = {cell: len(values) for cell, values in first.items()}
    order = rng.permutation(sum(sizes.values()))
    return {
        outcome: dict(_dealt(np.concatenate([values[cell] for cell in sizes])[order], sizes))
        for outcome, values in table.items()
    }


def _dealt(values: Array, sizes: Mapping[Cell, int]) -> Iterator[tuple[Cell, list[float]]]:
    start = 0
    for cell, size in sizes.items():
        yield cell, values[start : start + size].tolist()
        start += size
