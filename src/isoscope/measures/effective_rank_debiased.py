"""Debiased effective rank: what would the effective rank read with endless documents?"""

from typing import Self

from isoscope.accumulate import Tally
from isoscope.dataclass import dataclass
from isoscope.measures.base import measure
from isoscope.measures.effective_rank import effective_rank, entropy_rank
from isoscope.measures.extrapolate import (
    Estimate,
    by_halves,
    extrapolate,
    value_by_halves,
    warn_of_doubt,
)
from isoscope.measures.interval import Spread
from isoscope.measures.view import Halves, Spectrum, Summaries, View, isotropic_spectrum


def _isotropic(n: int, d: int) -> float:
    whole, half = (entropy_rank(isotropic_spectrum(rows, d)) for rows in (n, max(n // 2, 2)))
    return extrapolate(whole, half, independent=True)


@dataclass(frozen=True)
class RankByHalves(View):
    """What interval, spread and warnings are made of, estimated once."""

    needs = Halves.needs
    for_intervals = Halves.for_intervals
    estimate: Estimate | None
    rows: int

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the estimate for the spectrum of all rows."""
        whole = summaries.view(Spectrum)
        return cls(by_halves(whole, effective_rank), whole.count)

    @property
    def count(self) -> int:
        """How many rows it rests on."""
        return self.rows


def _estimate(seen: Halves) -> Estimate | None:
    return seen.summaries.view(RankByHalves).estimate


def _spread(seen: Halves, _value: float, _published: bool) -> Spread | None:
    found = _estimate(seen)
    return None if found is None else found.spread


def _interval(seen: Halves, _value: float, _published: bool) -> tuple[float, float] | None:
    found = _estimate(seen)
    return None if found is None else found.ends


def _warn(seen: Halves, _value: float, _error: float | None) -> list[str]:
    independent = seen.summaries.of(Tally).independent
    found = _estimate(seen)
    return [] if found is None else warn_of_doubt(found, low=True, independent=independent)


@measure(
    "effective-rank-debiased",
    reads=Halves,
    isotropic=_isotropic,
    collapsed=1.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="quenouille1956",
    formula="1 / (2/ER - 1/ER_h), rows without documents ER^2 / ER_h; ER_h of half of the "
    "documents, averaged over two halves",
    misleads="Extrapolates from half of the documents to endless ones; with far fewer of them "
    "than dimensions that is a guess, and a warning says so.",
    interval=_interval,
    spread=_spread,
    warn=_warn,
)
def effective_rank_debiased(seen: Halves) -> float:
    """Effective rank with the bias of few rows or documents taken away.

    Half of the documents lose about twice as much as all of them: the difference between the
    whole and its halves tells how much is missing.
    """
    return value_by_halves(seen.whole, effective_rank)
