"""What a reading would be with endless documents, from the whole and from its two halves."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, sqrt

import numpy as np

from isoscope.accumulate import Moments, Tally
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.interval import (
    Spread,
    enough_groups,
    far_quantile,
    influences,
    quantile,
    values_without,
)
from isoscope.measures.view import Spectrum

TOLERABLE = 1.0  # standard errors: the doubt about the extrapolation that an interval covers
UNSURE = 0.5  # of a correction, where there are fewer documents than dimensions
MANY = 80  # documents from which on the first two orders are enough whatever the dimensions
FARTHEST = 3.0  # times what a half loses: no extrapolation goes further


@dataclass(frozen=True)
class Estimate:
    """The value of the population as estimated, with its interval and its spread."""

    value: float
    ends: tuple[float, float]
    spread: Spread
    doubt: float = 0.0  # by how much another extrapolation differs

    @property
    def is_doubtful(self) -> bool:
        """Whether the interval cannot cover the doubt about the extrapolation."""
        return self.doubt > TOLERABLE * self.spread.error

    def ends_about(self, plain: float) -> tuple[float, float]:
        """Return the interval for a plain reading, which is extended to hold it.

        Where the reading lies outside by itself, less is left to be missed there, and the
        end on the other side comes nearer: 5 % are left out in all. Not where the
        extrapolation is in doubt: what it may lack lies beyond that end.
        """
        low, high = self.ends
        error, freedom = self.spread.error, self.spread.freedom
        if not 0 < error < inf or freedom < 1 or self.is_doubtful:
            return low, high
        share = far_quantile(abs(plain - self.value) / error, freedom) / quantile(freedom)
        if plain < self.value:
            return low, self.value + share * (high - self.value)
        return self.value - share * (self.value - low), high


def extrapolate(plain: float, half: float, *, independent: bool) -> float:
    """Return the value at endless documents, from that of all and that of half of them.

    The bias goes with 1/n to first order: what a half lacks, the whole lacks again. A value
    that falls short loses a share of itself, so that the next order is positive. For
    independent rows the logarithm of an effective rank is nearly linear in 1/n; where the
    rows of a document share a part of their variance, its inverse is.

    >>> round(extrapolate(9.0, 8.0, independent=False), 4)
    10.2857
    >>> extrapolate(8.0, 9.0, independent=False)
    7.0
    """
    gap = plain - half
    lost = gap / plain if plain > 0 else 0.0
    if lost <= 0:
        return plain + gap
    remains = 1 - (1 if independent else 2) * lost
    return plain + gap * (min(1 / remains, FARTHEST) if remains > 0 else FARTHEST)


def doubt(plain: float, half: float, *, independent: bool) -> float:
    """Return how far the next way of extrapolating lies from this one."""
    gap = plain - half
    lost = gap / plain if plain > 0 else 0.0
    if lost >= 0 and not independent:
        other = extrapolate(plain, half, independent=True)
        return abs(extrapolate(plain, half, independent=False) - other)
    return abs(gap * lost / (1 - abs(lost))) if abs(lost) < 1 else inf


def value_by_halves(seen: Spectrum, compute: Callable[[Spectrum], float]) -> float:
    """Return the extrapolated value of a measure of the spectrum."""
    plain, half, _ = _values(seen, compute)
    return extrapolate(plain, half, independent=_is_independent(seen))


def by_halves(seen: Spectrum, compute: Callable[[Spectrum], float]) -> Estimate | None:
    """Return the extrapolated value with its interval; None where it has none."""
    plain, half, _ = _values(seen, compute)
    independent = _is_independent(seen)
    value = extrapolate(plain, half, independent=independent)
    unsure = doubt(plain, half, independent=independent)
    if _are_few(seen):
        unsure = max(unsure, UNSURE * abs(value - plain))
    spread = _spread(seen, compute)
    if spread is None:
        return None
    spread = replace(spread, correction=value - plain)
    reach = quantile(spread.freedom) * spread.error
    return Estimate(value, (value - reach, value + reach), spread, unsure)


def warn_of_doubt(found: Estimate, *, low: bool, independent: bool) -> list[str]:
    """Warn where the interval cannot cover the doubt about the extrapolation."""
    if not found.is_doubtful:
        return []
    kind, side = "rows" if independent else "documents", "low" if low else "high"
    digits = float(f"{found.doubt:.2g}")  # two of them; 100 is printed as 100, not as 1e+02
    by = f"by {digits:g}" if isfinite(digits) else "by an unknown amount"
    return [f"may be biased {side}, {by} beyond its interval: too few {kind} for its spectrum"]


def _are_few(seen: Spectrum) -> bool:
    """Whether documents that count as this many leave whole directions unseen."""
    assert seen.summaries is not None
    tally = seen.summaries.of(Tally)
    return not tally.independent and tally.count**2 < min(seen.width, MANY) * tally.pairs


def _is_independent(seen: Spectrum) -> bool:
    assert seen.summaries is not None
    return seen.summaries.of(Moments).independent


def _values(
    seen: Spectrum, compute: Callable[[Spectrum], float]
) -> tuple[float, float, list[float]]:
    """Return a measure of the whole, of a half of the documents on average, and of each half.

    Halves are weighted by their rows: the larger one has less of the bias, which is then
    twice that of the whole however the documents were dealt.
    """
    halves = seen.halves()
    values = [compute(half) for half in halves]
    weights = _weights(halves)
    return compute(seen), sum(w * v for w, v in zip(weights, values, strict=True)), values


def _weights(halves: tuple[Spectrum, Spectrum]) -> list[float]:
    total = sum(half.seen_rows for half in halves)
    return [half.seen_rows / total for half in halves]


def _spread(seen: Spectrum, compute: Callable[[Spectrum], float]) -> Spread | None:
    """What each group adds to the error: it leaves the whole, and the half it is in."""
    if not enough_groups(seen):
        return None
    halves, independent = seen.halves(), _is_independent(seen)
    plain, half, values = _values(seen, compute)
    value = extrapolate(plain, half, independent=independent)
    total = np.zeros(seen.groups)
    try:
        of_seen = values_without(seen, compute)
        of_halves = [values_without(part, compute) for part in halves]
    except (TooFewRowsError, UndefinedError):
        return None
    weighted = zip(halves, of_halves, _weights(halves), values, strict=True)
    for part, of_part, weight, own in weighted:
        here = np.isin(seen.keys, part.keys)
        if part.groups < 2 or here.sum() != part.groups:
            return None
        without = [
            extrapolate(left, half + weight * (of_half - own), independent=independent)
            for left, of_half in zip(of_seen[here], of_part, strict=True)
        ]
        # centred in its half, but a group is one of those of the whole
        of_half = part.groups / (part.groups - 1)
        total[here] = influences(value, np.array(without), part.sizes) * of_half
    if not np.isfinite(total).all():
        return None
    of_whole = sqrt((seen.groups - 1) / seen.groups)
    return Spread(total * of_whole * seen.thinning, seen.keys, lost=2)
