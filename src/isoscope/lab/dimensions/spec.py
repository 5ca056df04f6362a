"""Rogue dimensions (Timkey): which few carry the mean cosine, and what is left without them?

The spec of `isoscope dimensions` and its worker, which only reads a saved run.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
import numpy as np

from isoscope.accumulate import (
    Directions,
    DirectionsSummary,
    Moments,
    Reservoir,
    contributions,
    cosine_over_pairs,
)
from isoscope.display import Results
from isoscope.engine import Scratch, Ticks
from isoscope.errors import TooFewRowsError
from isoscope.lab.dimensions.results import DIMENSIONS, Dimension, SiteDimensions
from isoscope.measures.interval import LEAST_DOCUMENTS, quantile, standard_error
from isoscope.study.run import Finished
from isoscope.study.saved_runs import (
    SavedRunSpec,
    SavedRunWorker,
    SavedSite,
    Summaries,
    summaries_of,
    summary_of,
)
from isoscope.types import Array

TOP = (1, 3, 5)  # how many dimensions are removed for r squared
WIDE = 5.0  # times the average variance, from which on Rudman calls a dimension an outlier
NOT_KEPT = "expected sums of directions, moments and a sample, got a run without them"


class DimensionsSpec(SavedRunSpec[Results[SiteDimensions]], frozen=True, kw_only=True):
    """Find which dimensions carry the mean cosine of each site, and what is left without them.

    With their kurtosis, and how much of the cosines of whole vectors (r squared, over the
    pairs of the sample) is left when the top 1, 3 and 5 are removed.
    """

    command: ClassVar[str] = "dimensions"
    worker_at: ClassVar[str] = "isoscope.lab.dimensions.spec:DimensionsWorker"


class DimensionsWorker(SavedRunWorker[Results[SiteDimensions]]):
    """An open run."""

    def run(self, unit: object, _scratch: Scratch, _ticks: Ticks, /) -> SiteDimensions | None:
        """Return the dimensions of one site; None where the run has not kept what they need."""
        assert isinstance(unit, SavedSite)
        for site, variant, here in summaries_of(self.saved, [unit.site], self.read.variant):
            try:
                return site_dimensions(site, variant, here)
            except TooFewRowsError:  # a site with one row does not stop the others
                return None
        return None

    def finish(self, done: Finished) -> Results[SiteDimensions]:
        """Return the dimensions of every site that has them."""
        records = msgspec.convert(done.records, list[SiteDimensions | None], str_keys=True)
        found = [each for each in records if each is not None]
        if not found:
            raise TooFewRowsError(
                "expected a site with directions, moments and a sample, got none in the run",
                hint="survey again with the measures mean-cosine, isoscore and uniformity",
                slug="summary-not-kept",
            )
        missing = [
            f"{unit.site}: {NOT_KEPT}"
            for unit, each in zip(done.plan.stages[0], records, strict=True)
            if each is None and isinstance(unit, SavedSite)
        ]
        return Results(found, DIMENSIONS, shared={"run": self.name}, left_out=missing)


def site_dimensions(
    site: str, variant: str, here: Summaries, top: Sequence[int] = TOP
) -> SiteDimensions | None:
    """Return the dimensions that carry the mean cosine of a site.

    Shares are exact, from the sums of unit vectors: no pairs are drawn.
    """
    directions, scatter = summary_of(here, Directions), summary_of(here, Moments)
    rows = summary_of(here, Reservoir)
    if directions is None or scatter is None or rows is None:
        return None
    seen, moments, sample = directions.finalize(), scatter.finalize(), rows.finalize()
    shares, kurtosis = seen.shares, excess_kurtosis(sample.rows)
    variance = np.diag(moments.whole.scatter) / moments.count
    average = float(variance.mean())
    ratio = variance / average if average else np.zeros_like(variance)
    order = np.argsort(-contributions(seen.total, seen.energy), kind="stable")
    peaked = np.argsort(-np.nan_to_num(kurtosis, nan=-np.inf), kind="stable")
    errors = _errors(seen, shares)
    several = min(max(top, default=1), len(order))
    without = {
        k: cosine_r_squared(sample.rows, order[:k].tolist()) for k in top if k < len(order)
    }
    total = seen.total
    return SiteDimensions(
        site=site,
        variant=variant,
        n=seen.count,
        d=len(order),
        mean_cosine=float(cosine_over_pairs(float(total @ total), float(seen.count))),
        top=[
            _dimension(int(i), shares, errors, moments.mean, ratio, kurtosis)
            for i in order[:several]
        ],
        wide=[int(i) for i in np.argsort(-ratio, kind="stable") if ratio[i] >= WIDE],
        most_kurtotic=[int(i) for i in peaked[:several] if np.isfinite(kurtosis[i])],
        r_squared={k: found[0] for k, found in without.items()},
        mean_cosine_without={k: found[1] for k, found in without.items()},
        sample=sample.count,
    )


def excess_kurtosis(rows: Array) -> Array:
    """Return m4 / m2^2 - 3 of every column; NaN where it does not vary."""
    centred = np.asarray(rows, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    size = np.abs(centred).max(axis=0)
    moving = size > 1e-12 * np.abs(rows).max(axis=0)
    scaled = np.divide(centred, size, out=np.ones_like(centred), where=moving)
    second, fourth = (scaled**2).mean(axis=0), (scaled**4).mean(axis=0)
    return np.where(moving, fourth / second**2 - 3.0, np.nan)


def cosine_r_squared(rows: Array, removed: Sequence[int]) -> tuple[float | None, float | None]:
    """Return r^2 between cosines with and without dimensions, and the mean cosine without.

    Over all pairs of rows that have a direction either way; None where there is no spread.
    """
    rows = np.asarray(rows, dtype=np.float64)
    kept = np.delete(rows, list(removed), axis=1)
    lengths, shorter = np.linalg.norm(rows, axis=1), np.linalg.norm(kept, axis=1)
    both = (lengths > 0) & (shorter > 0)
    if both.sum() < 3 or not kept.shape[1]:
        return None, None
    pairs = np.triu_indices(int(both.sum()), 1)
    units, others = rows[both] / lengths[both, None], kept[both] / shorter[both, None]
    whole, without = (units @ units.T)[pairs], (others @ others.T)[pairs]
    mean = float(without.mean())
    whole -= whole.mean()
    without -= mean
    spread = (whole @ whole) * (without @ without)
    flat = spread <= (1e-14 * len(whole)) ** 2  # rounding is all that is left of them
    return (None if flat else float((whole @ without) ** 2 / spread)), mean


def _dimension(
    index: int, shares: Array, errors: Array | None, mean: Array, ratio: Array, kurtosis: Array
) -> Dimension:
    share = _number(shares[index])
    low = high = None
    if errors is not None and share is not None:
        low, high = share - float(errors[index]), share + float(errors[index])
    return Dimension(
        index=index,
        share=share,
        low=low,
        high=high,
        mean=float(mean[index]),
        variance_ratio=float(ratio[index]),
        kurtosis=_number(kurtosis[index]),
    )


def _errors(seen: DirectionsSummary, shares: Array) -> Array | None:
    """Return how far from each share its interval reaches, by leaving out groups in turn."""
    if seen.documents < LEAST_DOCUMENTS or seen.groups < LEAST_DOCUMENTS:
        return None
    without = np.array([seen.without(group).shares for group in range(seen.groups)])
    if not np.isfinite(without).all():
        return None
    reach = quantile(seen.groups - 1)
    columns = zip(shares, without.T, strict=True)
    return np.array([reach * standard_error(s, w, seen.sizes) for s, w in columns])


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
