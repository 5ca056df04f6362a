"""Rogue dimensions: those whose part in the mean cosine stands out from all others."""

from statistics import NormalDist

import numpy as np

from isoscope.explain.cloud import Totals
from isoscope.types import Array

MOST = 5
_ONE_IN = 100  # mean vectors that point anywhere, one has a dimension that stands out as far
_FEWEST = 8  # other dimensions that one can stand out from


def stands_out(others: int) -> float:
    """Return how many times the root mean square of the others makes a dimension rogue.

    Of a mean vector that points anywhere the largest coordinate goes beyond it once in a
    hundred times: a quantile of Student's t (Cornish-Fisher), as in Rosner's test for
    several outliers. A dimension that carries less of the mean cosine than about the square
    of this over the width (0.25 at 64, 0.05 at 384, 0.025 at 768) cannot be told from a mean
    spread over all.
    """
    z = NormalDist().inv_cdf(1 - 0.5 / (_ONE_IN * (others + 1)))
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / others + second / others**2 + third / others**3


def rogue(totals: Totals) -> tuple[int, ...]:
    """Return the dimensions that stand out, at most five, the largest first.

    From the smallest of five candidates upwards, so that two that are alike do not hide
    each other.
    """
    size = np.abs(totals.unit)
    largest = np.argsort(-size, kind="stable")
    for candidates in range(min(MOST, len(size) - _FEWEST), 0, -1):
        rest = size[largest[candidates:]]
        limit = stands_out(len(rest)) * float(np.sqrt(np.mean(rest**2)))
        if size[largest[candidates - 1]] > limit:
            return tuple(int(each) for each in largest[:candidates])
    return ()


def kept(width: int, dimensions: tuple[int, ...]) -> Array:
    """Return which dimensions are left, as a mask."""
    left = np.ones(width, dtype=bool)
    left[list(dimensions)] = False
    return left
