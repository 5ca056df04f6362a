"""Rogue dimensions: those whose part in the mean cosine stands out from all others."""

from functools import cache
from math import comb, erfc, inf, log, sqrt

import numpy as np

from isoscope.types import Array

MOST = 5
_ONE_IN = 100  # mean vectors that point anywhere, one has dimensions that stand out as far
_FEWEST = 8  # other dimensions that one can stand out from


def rogue(vectors: list[tuple[Array, Array]]) -> tuple[int, ...]:
    """Return the dimensions that stand out of any of these vectors, at most five.

    Each vector comes with the variance of its noise, dimension by dimension: one that is
    large because it varies is not rogue. The largest of the first vector come first.
    """
    found = {each for pair in vectors for each in outliers(*pair, tests=len(vectors))}
    size = np.abs(vectors[0][0])
    return tuple(sorted(found, key=lambda each: -size[each])[:MOST])


def outliers(vector: Array, noise: Array, *, tests: int = 1) -> list[int]:
    """Return the coordinates that stand out as no vector that points anywhere would have them.

    The largest, or the two, three, four or five largest together: two that are each too
    small to be distinguished from chance are not two by chance. Then among the rest.
    """
    found: list[int] = []
    rest = np.arange(len(vector))
    while len(found) < MOST:
        most = min(MOST - len(found), len(rest) - _FEWEST)
        scores = _scores(vector[rest] ** 2, noise[rest], most)
        # how many of the largest stand out from all others
        enough = (
            count
            for count, scaled in enumerate(scores, 1)
            if np.partition(scaled, -count)[-count] > stands_out(count, len(scaled), tests)
        )
        count = next(enough, 0)
        if not count:
            break
        largest = np.argsort(-scores[count - 1], kind="stable")[:count]
        found += [int(each) for each in rest[largest]]
        rest = np.delete(rest, largest)
    return found


def _scores(squares: Array, noise: Array, most: int) -> list[Array]:
    """Return each coordinate over its scale: that of all but the largest, and its own noise.

    Once without the largest one, once without the two largest, and so on.
    """
    largest = np.argsort(-squares, kind="stable")[: max(most, 0)]
    excess = squares - noise
    left = excess.sum() - np.cumsum(excess[largest])
    sizes = np.maximum(left / (len(squares) - np.arange(1, len(left) + 1)), 0.0)
    return [np.sqrt(squares / np.maximum(each + noise, 1e-300)) for each in sizes]


@cache
def stands_out(count: int, width: int, tests: int = 1) -> float:
    """Return how many times their scale coordinates must be to stand out, `count` together.

    A mean vector that points anywhere has a given set of coordinates all beyond t times the
    root mean square of the others with a chance that is an integral over Student's law; there
    are `width` over `count` sets. Summed up over them all, over one to five coordinates and
    over the vectors looked at, the chance is one in a hundred at most. Two dimensions that
    have less than about 2 t^2 / (width + 2 t^2) of the mean cosine together (0.50 at 32, 0.31
    at 64, 0.14 at 192, 0.04 at 768) cannot be distinguished from a mean spread over all.
    """
    sets = log(comb(width, count)) + log(_ONE_IN * MOST * tests)
    low, high = 0.0, 100.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if sets + _all_beyond(middle, count, width - count) > 0
            else (low, middle)
        )
    return high


def _all_beyond(times: float, count: int, others: int) -> float:
    """Return the logarithm of the chance that given coordinates are all that large."""
    reach = 8 / sqrt(2 * others)
    scales = np.linspace(max(1 - reach, 0.02), 1 + reach, 201)  # root mean square of others
    weights = (others - 1) * np.log(scales) - others * scales**2 / 2
    weights = np.exp(weights - weights.max())
    beyond = np.array([erfc(times * each / sqrt(2)) for each in scales])
    chance = float(weights @ beyond**count / weights.sum())
    return log(chance) if chance > 0 else -inf


def mask_without(width: int, dimensions: tuple[int, ...]) -> Array:
    """Return a mask of all dimensions but these."""
    left = np.ones(width, dtype=bool)
    left[list(dimensions)] = False
    return left
