"""Debiased effective rank: the bias of few rows, halved away."""

from math import inf, sqrt

import numpy as np

from isoscope.accumulate import Tally
from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.effective_rank import effective_rank, entropy_rank
from isoscope.measures.interval import Spread, enough_groups, influences, quantile
from isoscope.measures.view import Halves, isotropic_spectrum

TOLERABLE = 0.25  # of the standard error: the bias that an interval still covers
NOTICEABLE = 0.01  # of the value, where there is no standard error


def _isotropic(n: int, d: int) -> float:
    return 2 * entropy_rank(isotropic_spectrum(n, d)) - entropy_rank(
        isotropic_spectrum(max(n // 2, 2), d)
    )


def _spread(seen: Halves, _value: float, _published: bool) -> Spread | None:
    """What each group adds to the error: it leaves the whole, and the half it is in."""
    whole = seen.whole
    if not enough_groups(whole):
        return None
    total = np.zeros(whole.groups)
    for half in seen.spectra:
        here = np.isin(whole.keys, half.keys)
        if half.groups < 2:
            return None
        try:
            moved = [
                2 * (effective_rank(whole) - effective_rank(whole.without(group)))
                - (effective_rank(half) - effective_rank(half.without(place))) / 2
                for place, group in enumerate(np.flatnonzero(here).tolist())
            ]
        except UndefinedError:
            return None
        # centred in its half, but a group is one of those of the whole
        of_half = half.groups / (half.groups - 1)
        total[here] = influences(0.0, -np.array(moved), half.sizes) * of_half
    if not np.isfinite(total).all():
        return None
    of_whole = sqrt((whole.groups - 1) / whole.groups)
    return Spread(total * of_whole * whole.thinning, whole.keys, lost=2)


def _interval(seen: Halves, value: float, _published: bool) -> tuple[float, float] | None:
    found = _spread(seen, value, _published)
    if found is None:
        return None
    reach = quantile(found.freedom) * found.error
    return value - reach, value + reach


def remaining_bias(seen: Halves) -> float:
    """Estimate how much too low the debiased value still is.

    Let u be the share that half of the documents lose. Halving removes what goes with 1/n. For
    independent rows the logarithm of the rank is nearly linear in 1/n (of white rows it is
    log d - d / 2n), so that ER / (1 - u) is right, and 2 ER - ER_half = ER (1 + u) too low.
    Where rows of a document share a part r of their variance, log ER is
    log d - r^2 g / 2 + r^3 (1 - r) g^2 / 6, g dimensions per document, and more remains.
    """
    plain = effective_rank(seen.whole)
    lost = max(1 - sum(map(effective_rank, seen.spectra)) / 2 / plain, 0.0)
    if lost >= 1:
        return inf
    remaining = plain * lost**2 / (1 - lost)
    tally = seen.summaries.of(Tally)
    if tally.independent or not lost:
        return remaining
    documents = tally.count**2 / tally.pairs  # of equal length, that count as much
    shared = min(sqrt(2 * lost * documents / (plain * (1 + lost))), 1.0)
    return remaining * (1 + 4 * (1 - shared) / (3 * shared))


def _warn(seen: Halves, value: float, error: float | None) -> list[str]:
    """Warn where the bias that remains would spoil the interval."""
    remaining = remaining_bias(seen)
    if remaining <= (NOTICEABLE * value if error is None else TOLERABLE * error):
        return []
    kind = "rows" if seen.summaries.of(Tally).independent else "documents"
    return [f"still biased low, by {remaining:.2g} or more: too few {kind} for its spectrum"]


@measure(
    "effective-rank-debiased",
    reads=Halves,
    isotropic=_isotropic,
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="quenouille1956",
    formula="2 ER - (ER_a + ER_b) / 2, ER_a and ER_b of two halves of the documents",
    misleads="Removes the part of the bias that goes with 1/n only; with far fewer documents "
    "than dimensions much of it stays, and a warning says so. A few rows of great length can "
    "push it below 1.",
    interval=_interval,
    spread=_spread,
    warn=_warn,
)
def effective_rank_debiased(seen: Halves) -> float:
    """Effective rank with the leading bias of few rows or documents taken away.

        2 ER - (ER_a + ER_b) / 2

    Halving the documents doubles the bias, so the difference between the whole and its
    halves tells how large it is.
    """
    return 2 * effective_rank(seen.whole) - sum(map(effective_rank, seen.spectra)) / 2
