"""What a weight changes: paired differences to weight 0, with intervals and a correction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, stdev

from isoscope.lab.plain import Plain
from isoscope.lab.sweep.student import quantile, two_sided

ERRORS = 2.0  # standard errors by which a task has to beat its baseline to count as learnt


@dataclass(frozen=True)
class Difference(Plain):
    """How a number differs from weight 0 over the same seeds; None with a single seed."""

    value: float
    low: float | None
    high: float | None
    p: float | None  # two-sided, of this comparison alone
    p_holm: float | None = None  # corrected for all comparisons that were made


def paired(values: Sequence[float], plain: Sequence[float]) -> Difference:
    """Return the mean difference over seeds, with Student's interval."""
    apart = [a - b for a, b in zip(values, plain, strict=True)]
    middle = fmean(apart)
    if len(apart) < 2:
        return Difference(middle, None, None, None)
    error, freedom = stdev(apart) / sqrt(len(apart)), len(apart) - 1
    reach = quantile(freedom) * error
    t = middle / error if error > 0 else (inf if middle else 0.0)
    return Difference(middle, middle - reach, middle + reach, two_sided(t, freedom))


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """Return chances corrected for their number (Holm): of any being this small by luck.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, place) for place, p in enumerate(chances) if p is not None)
    corrected: list[float | None] = [None] * len(chances)
    worst = 0.0
    for rank, (p, place) in enumerate(known):
        worst = max(worst, min(1.0, (len(known) - rank) * p))
        corrected[place] = worst
    return corrected


def differences(by_weight: Mapping[float, Sequence[float]]) -> dict[float, Difference]:
    """Return the difference of each weight to weight 0, corrected for looking at many."""
    found = {
        weight: paired(values, by_weight[0.0])
        for weight, values in by_weight.items()
        if weight != 0
    }
    corrected = holm([each.p for each in found.values()])
    return {
        weight: Difference(each.value, each.low, each.high, each.p, p)
        for (weight, each), p in zip(found.items(), corrected, strict=True)
    }


def learnt(plain: Sequence[float], baseline: float) -> bool | None:
    """Whether runs without penalty beat knowing nothing; None where one seed cannot tell."""
    if len(plain) < 2:
        return None
    error = stdev(plain) / sqrt(len(plain))
    return fmean(plain) - baseline > ERRORS * error
