"""What a weight changes: paired differences to weight 0, with intervals and a correction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from isoscope.lab.plain import Plain
from isoscope.lab.sweep.student import quantile, two_sided

ROUNDING = 1e-12  # spreads below this share of the values are none
ERRORS = 2.0  # standard errors by which a task has to beat its baseline to count as learnt


@dataclass(frozen=True)
class Difference(Plain):
    """How a number differs from weight 0 over the same seeds; None where they cannot tell."""

    value: float
    low: float | None
    high: float | None
    p: float | None  # two-sided, of this comparison alone
    p_holm: float | None = None  # corrected for all comparisons that were made


def paired(values: Sequence[float], plain: Sequence[float]) -> Difference:
    """Return the mean difference over seeds, with Student's interval.

    One seed has no spread, and neither have differences that are all the same, as of two
    seeds and few held-out examples: they have no interval.
    """
    apart = [a - b for a, b in zip(values, plain, strict=True)]
    middle = fmean(apart)
    size = max(map(abs, (*values, *plain)))
    if len(apart) < 2 or stdev(apart) <= ROUNDING * size:
        return Difference(middle, None, None, None)
    error, freedom = stdev(apart) / sqrt(len(apart)), len(apart) - 1
    reach = quantile(freedom) * error
    chance = two_sided(middle / error, freedom)
    return Difference(middle, middle - reach, middle + reach, chance)


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
    return fmean(plain) - baseline > ERRORS * error + ROUNDING * abs(baseline)
