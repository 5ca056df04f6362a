"""Onset: which is the first checkpoint that differs from the first one of all?

Every later checkpoint is compared with step 0 on the same documents, and the p-values are
corrected for their number. The differences go together, since they share step 0 and all
documents; where it is known what each group of documents adds to each of them, the correction
takes that into account: the signs of whole groups are flipped at random (Westfall and Young,
1993; step-down).
"""

from collections.abc import Sequence
from functools import lru_cache
from math import inf, sqrt

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.measures.difference import holm
from isoscope.measures.interval import two_sided
from isoscope.types import Array

LEVEL = 0.05
FLIPS = 2000
_EXACT = 12  # groups up to which all flips are tried
_SEED = 17
_TIE = 1e-9  # of a statistic: two that are closer are equal


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a checkpoint to step 0, paired by document.

    `error` is None where it has none, as with too few documents.
    """

    value: float
    error: float | None
    freedom: float = 31.0


@dataclass(frozen=True, slots=True)
class Onset:
    """The first checkpoint that differs from step 0, and the corrected p-value of each.

    A checkpoint before it may differ as well, by less than can be told.
    """

    step: int | None  # None where none differs
    p: tuple[float | None, ...]  # of every step after the first, corrected for their number
    method: str  # "groups" (signs of document groups were flipped) or "holm"
    note: str = ""


def find_onset(
    steps: Sequence[int], differences: Sequence[Difference], parts: Array | None = None
) -> Onset:
    """Return the first step that differs from the first.

    `differences` are those of all steps but the first. `parts` (steps - 1, groups) is what
    each group of documents adds to the error of each difference, zero for groups that are not
    there; without it the correction is Holm's.
    """
    if len(differences) != len(steps) - 1:
        raise ValueError(
            f"expected a difference per later step, got {len(differences)} for {len(steps) - 1}"
        )
    if all(each.error is None for each in differences):
        return Onset(None, (None,) * len(differences), "holm", "no step has an interval")
    if parts is None:
        p, method = holm([_single(each) for each in differences]), "holm"
    else:
        p, method = _by_groups(differences, parts), "groups"
    first = next((i for i, each in enumerate(p) if each is not None and each <= LEVEL), None)
    return Onset(None if first is None else int(steps[first + 1]), tuple(p), method)


def _single(difference: Difference) -> float | None:
    """Return the p-value of a difference on its own."""
    if difference.error is None or difference.freedom < 1:
        return None
    t = inf if difference.value else 0.0
    if difference.error:
        t = difference.value / difference.error
    return two_sided(t, int(difference.freedom))


def _by_groups(differences: Sequence[Difference], parts: Array) -> list[float | None]:
    """Return p-values corrected by flipping the signs of groups of documents."""
    known = [i for i, each in enumerate(differences) if each.error is not None]
    values = np.array([differences[i].value for i in known])
    there = np.any(parts[known] != 0, axis=0)
    adds = parts[known][:, there]
    if adds.shape[1] < 2:  # no group ever adds anything: nothing to flip
        adds = np.zeros((len(known), 2))
    groups = adds.shape[1]
    # parts add up to nothing; with the value they are what each group says on its own
    alone = values[:, None] + sqrt(groups * (groups - 1)) * adds  # (steps, groups)
    corrected: list[float | None] = [None] * len(differences)
    for i, p in zip(known, step_down(alone), strict=True):
        corrected[i] = p
    return corrected


def step_down(alone: Array) -> list[float]:
    """Return corrected p-values of means (steps, groups) over groups that are zero on average.

    Of all sign patterns of the groups, the share in which the largest t of this step and of
    all less striking ones is as large as the t observed. It is exact where groups are
    independent and as likely to be above zero as below, however steps go together.
    """
    observed = _t(alone, np.ones((1, alone.shape[1])))[0]  # (steps,)
    flipped = _t(alone, _signs(alone.shape[1]))  # (flips, steps)
    order = np.argsort(-observed, kind="stable")
    largest = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]
    reached = largest >= observed[order] * (1 - _TIE)
    chances = np.maximum.accumulate(reached.mean(axis=0))
    chances[observed[order] == 0] = 1.0
    corrected = np.empty(len(order))
    corrected[order] = chances
    return corrected.tolist()


@lru_cache(maxsize=8)
def _signs(groups: int) -> Array:
    """Return sign patterns, (flips, groups), the first of which changes nothing."""
    if groups <= _EXACT:
        bits = np.arange(2 ** (groups - 1))[:, None] >> np.arange(groups) & 1
        return 1.0 - 2.0 * bits
    signs = np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(FLIPS, groups))
    signs[0] = 1.0
    return signs


def _t(alone: Array, signs: Array) -> Array:
    """Return how far means are from zero, in their errors, for every sign pattern.

    It is |sum| / sqrt(sum of squares), which grows with Student's t and needs no variance.
    """
    squares = np.sqrt(np.square(alone).sum(axis=1))
    return np.abs(signs @ alone.T) / np.where(squares > 0, squares, 1.0)
