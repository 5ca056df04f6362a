"""Rogue dimensions: those whose part in the mean cosine stands out from all others."""

from collections.abc import Callable
from functools import cache
from math import comb, erfc, floor, inf, isfinite, log, sqrt

import numpy as np

from isoscope.accumulate import ReservoirSummary
from isoscope.causes.cloud import CloudSums
from isoscope.causes.pairs import GroupSizes, Share, mean_cosine, pair_products
from isoscope.dataclass import dataclass
from isoscope.types import Array

TOGETHER = 5  # coordinates that may stand out together and not alone
_ONE_IN = 100  # mean vectors that point anywhere, one has dimensions that stand out as far
_FINE = 2.0**-14  # steps in which limits are given
_FEWEST = 8  # other dimensions that one can stand out from


def most_named(width: int) -> int:
    """Return how many dimensions are named at most: more would not be a few.

    >>> most_named(768), most_named(32)
    (96, 8)
    """
    return max(width // 8, 8)


@dataclass(frozen=True)
class RogueDimensions:
    """The dimensions that stand out, and what they carry of the mean cosine."""

    share: Share
    named: dict[int, float]  # share of each, the largest first
    stood_out: int  # how many did; more than are named if that was limited


def rogue_dimensions(cloud: CloudSums, groups: GroupSizes) -> RogueDimensions:
    """Return the dimensions that stand out from the mean unit vector of rows but sinks.

    The share is the sum of m_j^2 over them, of |m|^2, and its interval that of the same
    dimensions without each group. It reaches to the shares of those that stand out without
    a group, so that it allows for the choice, and of all that do where their number was
    limited. Taking the shares of other dimensions as values without a group would count a
    jump of eleven points as if every group made it: 58 % [12, 104] instead of [47, 59].
    """
    units, rows = cloud.units.sum(axis=(1, 2)), cloud.rows.sum(axis=(1, 2))
    parts = pair_products(units[:, :, None], units[:, :, None])  # (1 + groups, d)
    parts = parts / parts.sum(axis=1, keepdims=True)
    sums = np.concatenate([units.sum(axis=0)[None], units.sum(axis=0) - units])
    count = rows.sum() - np.r_[0, rows]  # (1 + groups,)
    noise = _noise(units, rows, cloud.energy)
    most = most_named(cloud.width)
    found = [outliers(total / n, noise) for total, n in zip(sums, count, strict=True)]
    share = groups.share(parts[:, found[0][:most]].sum(axis=1))
    if share.low is not None and share.high is not None:
        chosen = [each[:most] for each in found[1:]]
        others = [float(parts[0, each].sum()) for each in (*chosen, found[0])]
        share = Share(share.value, min(share.low, *others), max(share.high, *others))
    named = sorted(found[0][:most], key=lambda each: -parts[0, each])
    return RogueDimensions(
        share, {each: float(parts[0, each]) for each in named}, len(found[0])
    )


def _noise(units: Array, rows: Array, energy: Array) -> Array:
    """Return the variance of every coordinate of the mean, (d,).

    From how far the sums of groups are from what the mean has them be; but nowhere less than
    the part of all noise that a coordinate has in the variance of rows, which is known from
    more than a few groups.
    """
    n, groups = rows.sum(), len(rows)
    mean = units.sum(axis=0) / n
    residuals = units - rows[:, None] * mean
    variance = np.vecdot(residuals.T, residuals.T) / n**2 * groups / (groups - 1)
    spread = np.clip(energy / n - mean**2, 0, None)
    return np.maximum(variance, spread * (variance.sum() / max(float(spread.sum()), 1e-300)))


def cosine_without(
    sample: ReservoirSummary, dimensions: tuple[int, ...]
) -> tuple[Share, Share] | None:
    """Return the mean cosine of sampled rows, and of the same with dimensions set to zero.

    Rows become shorter by different factors, so that this is not what sums of unit vectors
    would give. None where there are no rows of two groups.
    """
    rows = sample.rows.astype(np.float64)
    before = _sample_cosine(rows, sample)
    rows[:, list(dimensions)] = 0
    after = _sample_cosine(rows, sample)
    return None if before is None or after is None else (before, after)


def _sample_cosine(rows: Array, sample: ReservoirSummary) -> Share | None:
    norms = np.linalg.norm(rows, axis=1)
    there = norms > 0
    number = len(sample.keys)
    units = np.eye(number)[:, sample.cells[there]] @ (rows[there] / norms[there, None])
    counts = np.bincount(sample.cells[there], minlength=number).astype(np.float64)
    units, counts = units[counts > 0], counts[counts > 0]
    if len(counts) < 2:
        return None
    groups = GroupSizes(counts, len(np.unique(sample.documents)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return groups.share(mean_cosine(units, counts))


def outliers(vector: Array, noise: Array) -> list[int]:
    """Return the coordinates that stand out as no vector that points anywhere would have them.

    `noise` is the variance of each: one that is large because it varies does not stand out.
    The largest, or the two, three, four or five largest together: two that are each too
    small to be distinguished from chance are not two by chance. Then among the rest, until
    nothing stands out. The largest come first.
    """
    found: list[int] = []
    rest = np.arange(len(vector))
    while len(largest := _largest(vector[rest] ** 2, noise[rest])):
        found += [int(each) for each in rest[largest]]
        rest = np.delete(rest, largest)
    return found


def _largest(squares: Array, noise: Array) -> Array:
    """Return the largest coordinates if they stand out from all others, the fewest that do.

    Each is taken over its scale: that of all but the largest, and its own noise.
    """
    width = len(squares)
    order = np.argsort(-squares, kind="stable")[: max(min(TOGETHER, width - _FEWEST), 0)]
    excess = squares - noise
    left = excess.sum()
    for count, each in enumerate(order, 1):
        left -= excess[each]
        scale = max(left / (width - count), 0.0)
        scores = np.sqrt(squares / np.maximum(scale + noise, 1e-300))
        if np.count_nonzero(scores > stands_out(count, width)) >= count:
            return np.argsort(-scores, kind="stable")[:count]
    return order[:0]


@cache
def stands_out(count: int, width: int) -> float:
    """Return how many times their scale coordinates must be to stand out, `count` together.

    A mean vector that points anywhere has a given set of coordinates all beyond t times the
    root mean square of the others with a chance that is an integral over Student's law; there
    are `width` over `count` sets. Summed up over them all and over one to five coordinates,
    the chance is one in a hundred at most. Two dimensions that have less than about
    2 t^2 / (width + 2 t^2) of the mean cosine together (0.50 at 32, 0.31 at 64, 0.14 at 192,
    0.04 at 768) cannot be distinguished from a mean spread over all.
    """
    sets = log(comb(width, count)) + log(_ONE_IN * TOGETHER)

    def surplus(times: float) -> float:
        return sets + _all_beyond(times, count, width - count)

    low, high = 0, round(64 / _FINE)
    near = _near_zero(surplus, 2 * sets / count, -count / 2) / _FINE
    guesses = [floor(near), floor(near) + 1] if near < high else []
    while high - low > 1:
        middle = guesses.pop() if guesses else (low + high) // 2
        if not low < middle < high:
            continue
        low, high = (middle, high) if surplus(middle * _FINE) > 0 else (low, middle)
    return high * _FINE


def _near_zero(surplus: Callable[[float], float], square: float, slope: float) -> float:
    """Return about where a function is zero that is nearly linear in its argument squared."""
    excess = surplus(sqrt(square))
    for _ in range(8):
        if not isfinite(excess) or abs(excess) < 1e-9:
            break
        last, square = square, max(square - excess / slope, 0.0)
        before, excess = excess, surplus(sqrt(square))
        if square == last or excess == before:
            break
        slope = (excess - before) / (square - last)
    return sqrt(square)


def _all_beyond(times: float, count: int, others: int) -> float:
    """Return the logarithm of the chance that given coordinates are all that large."""
    reach = 8 / sqrt(2 * others)
    scales = np.linspace(max(1 - reach, 0.02), 1 + reach, 61)  # root mean square of others
    weights = (others - 1) * np.log(scales) - others * scales**2 / 2
    weights = np.exp(weights - weights.max())
    beyond = np.array([erfc(times * each / sqrt(2)) for each in scales])
    chance = float(weights @ beyond**count / weights.sum())
    return log(chance) if chance > 0 else -inf
