"""Two curves over the same checkpoints: do they move together, and does one move first?

Curves that both rise correlate whatever they are. What can be compared are their shocks: what
a smooth trend and autocorrelated noise do not foresee (`isoscope.lab.trajectory.shocks`). If
two curves have nothing to do with each other, the products of their shocks are zero on average;
Student's t of these products also allows for noise that is louder at times.
"""

from collections.abc import Sequence

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.lab.trajectory.shocks import (
    FEWEST,
    best_shocks,
    have_pattern,
    is_flat,
    model,
    places,
)
from isoscope.measures.interval import two_sided
from isoscope.types import Array

LEAST_TOGETHER = 20  # checkpoints below which there is no p-value
LEAST_LEAD = 30
_LONGEST_LAG = 8  # checkpoints


@dataclass(frozen=True, slots=True)
class Association:
    """How the shocks of two curves go together, at the same checkpoint."""

    correlation: float | None  # of the shocks
    p: float | None
    n: int  # checkpoints
    note: str = ""  # why there is no p-value or correlation

    @property
    def found(self) -> bool:
        """Whether the curves move together, at the 5 % level."""
        return self.p is not None and self.p <= 0.05


@dataclass(frozen=True, slots=True)
class Lead:
    """How the shocks of one curve go with later shocks of another.

    `correlations` are by `lags`, in checkpoints; where a lag is negative, the second curve is
    first. Only positive lags are tested, all at once: `lag` is the strongest of them, and
    a positive correlation there says that a fall is followed by a fall.
    """

    lag: int | None
    correlation: float | None
    p: float | None
    n: int  # checkpoints
    lags: tuple[int, ...] = ()
    correlations: tuple[float, ...] = ()
    note: str = ""  # why there is no p-value or correlation

    @property
    def found(self) -> bool:
        """Whether the first curve leads, at the 5 % level."""
        return self.p is not None and self.p <= 0.05


def move_together(steps: Sequence[int], a: Sequence[float], b: Sequence[float]) -> Association:
    """Return whether two curves move together beyond their trends."""
    n = len(steps)
    shocks, note = _shocks(steps, a, b, LEAST_TOGETHER)
    if shocks is None:
        return Association(None, None, n, note)
    of_a, of_b = shocks[:1], shocks[1:]
    p = None if note else float(lead_chances(of_a, of_b, [0])[0])
    return Association(float(correlation(of_a, of_b, 0)[0]), p, n, note)


def leads(steps: Sequence[int], a: Sequence[float], b: Sequence[float]) -> Lead:
    """Return whether shocks of `a` are followed by shocks of `b`."""
    n = len(steps)
    shocks, note = _shocks(steps, a, b, LEAST_LEAD)
    if shocks is None:
        return Lead(None, None, None, n, note=note)
    of_a, of_b = shocks[:1], shocks[1:]
    tested = candidate_lags(n)
    before = [float(correlation(of_b, of_a, lag)[0]) for lag in tested]
    after = [float(correlation(of_a, of_b, lag)[0]) for lag in tested]
    together = float(correlation(of_a, of_b, 0)[0])
    strongest = int(np.abs(after).argmax())
    return Lead(
        lag=tested[strongest],
        correlation=after[strongest],
        p=None if note else float(lead_chances(of_a, of_b, tested)[0]),
        n=n,
        lags=(*(-lag for lag in reversed(tested)), 0, *tested),
        correlations=(*reversed(before), together, *after),
        note=note,
    )


def candidate_lags(n: int) -> list[int]:
    """Return how many checkpoints one curve may be ahead: at most a tenth of all.

    >>> candidate_lags(30)
    [1, 2, 3]
    """
    return list(range(1, max(1, min(_LONGEST_LAG, n // 10)) + 1))


def _shocks(
    steps: Sequence[int], a: Sequence[float], b: Sequence[float], least: int
) -> tuple[Array | None, str]:
    """Return the shocks of both curves, (2, m), and why there can be no p-value."""
    curves = np.asarray([a, b], dtype=float)
    if curves.shape != (2, len(steps)):
        raise ValueError(f"expected two curves of {len(steps)} values, got {curves.shape}")
    if len(steps) < FEWEST:
        return None, f"fewer than {FEWEST} checkpoints"
    if any(is_flat(curve) for curve in curves):
        return None, "one of the two does not change at all"
    shocks = best_shocks(model(places(steps)), curves)
    note = ""
    if len(steps) < least:
        note = f"no p-value below {least} checkpoints"
    elif have_pattern(shocks).any():
        note = "no p-value: the noise of one of the two follows a pattern, or it has hardly any"
    return shocks, note


def correlation(first: Array, second: Array, lag: int) -> Array:
    """Return the correlation of shocks (curves, m) with those of others `lag` later."""
    a, b = _centred(first), _centred(second)
    products = a[:, : a.shape[1] - lag] * b[:, lag:]
    return products.sum(-1) / np.sqrt(np.square(a).sum(-1) * np.square(b).sum(-1))


def lead_chances(first: Array, second: Array, lags: Sequence[int]) -> Array:
    """Return the p-value of each pair of shocks (curves, m): the strongest of some lags.

    Student's t of the products at each lag, corrected for their number (Sidak, 1967).
    """
    a, b = _centred(first), _centred(second)
    smallest = np.ones(len(a))
    for lag in lags:
        products = a[:, : a.shape[1] - lag] * b[:, lag:]
        count = products.shape[1]
        share = np.square(products.sum(-1)) / (count * np.square(products).sum(-1))
        t = np.sqrt((count - 1) * share / np.maximum(1 - share, np.finfo(float).tiny))
        found = [two_sided(float(each), count - 1) for each in t]
        smallest = np.minimum(smallest, found)
    return 1 - np.power(1 - smallest, len(lags))


def _centred(shocks: Array) -> Array:
    return shocks - shocks.mean(axis=-1, keepdims=True)
