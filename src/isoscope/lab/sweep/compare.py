"""What a weight changes: paired differences to weight 0, with intervals and a correction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev

from isoscope.measures.difference import NO_SPREAD, Difference, holm, paired_difference

ERRORS = 2.0  # standard errors by which a task has to beat its baseline to count as learnt


def differences(by_weight: Mapping[float, Sequence[float]]) -> dict[float, Difference]:
    """Return the difference of each weight to weight 0, corrected for looking at many."""
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


def learnt(plain: Sequence[float], baseline: float) -> bool | None:
    """Whether runs without penalty beat knowing nothing; None where one seed cannot tell."""
    if len(plain) < 2:
        return None
    error = stdev(plain) / sqrt(len(plain))
    return fmean(plain) - baseline > ERRORS * error + NO_SPREAD * abs(baseline)
