"""Debiased effective rank: the bias of few rows, halved away."""

import numpy as np

from isoscope.measures.base import measure
from isoscope.measures.effective_rank import effective_rank, entropy_rank
from isoscope.measures.interval import Spread, interval, spread
from isoscope.measures.view import Halves, isotropic_spectrum
from isoscope.types import Array


def _rank_of(covariance: Array, count: float) -> float:
    values = np.maximum(np.linalg.eigvalsh(covariance)[::-1], 0.0)
    values[int(min(count - 1, len(values))) :] = 0.0
    return entropy_rank(values)


def _isotropic(n: int, d: int) -> float:
    return 2 * entropy_rank(isotropic_spectrum(n, d)) - entropy_rank(
        isotropic_spectrum(max(n // 2, 2), d)
    )


def _interval(seen: Halves, value: float, _published: bool) -> tuple[float, float] | None:
    plain = effective_rank(seen.whole)
    found = interval(seen.whole, effective_rank, plain)
    return None if found is None else (found[0] - plain + value, found[1] - plain + value)


def _spread(seen: Halves, _value: float, _published: bool) -> Spread | None:
    return spread(seen.whole, effective_rank, effective_rank(seen.whole))


@measure(
    "effective-rank-debiased",
    reads=Halves,
    isotropic=_isotropic,
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="quenouille1956",
    formula="2 ER - (ER_a + ER_b) / 2, ER_a and ER_b of two halves of the documents",
    misleads="Removes the part of the bias that goes with 1/n only; with far fewer documents "
    "than dimensions much of it stays, and a few rows of great length can push it below 1.",
    interval=_interval,
    spread=_spread,
)
def effective_rank_debiased(seen: Halves) -> float:
    """Effective rank with the leading bias of few rows or documents taken away.

        2 ER - (ER_a + ER_b) / 2

    Halving the documents doubles the bias, so the difference between the whole and its
    halves tells how large it is.
    """
    halves = [
        _rank_of(covariance, half.count)
        for covariance, half in zip(seen.covariances(), seen.moments.halves, strict=True)
    ]
    return 2 * effective_rank(seen.whole) - sum(halves) / 2
