"""Rogue dimensions (Timkey): which few carry the mean cosine, and what is left without them?"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isoscope.accumulate import Directions, Moments, Reservoir
from isoscope.accumulate.directions import contributions, cosine_over_pairs
from isoscope.errors import TooFewRowsError
from isoscope.lab.plain import Plain
from isoscope.lab.run_places import places_of, run_of
from isoscope.measures.interval import LEAST_DOCUMENTS, quantile, standard_error
from isoscope.store.run import Run
from isoscope.types import Array

TOP = (1, 3, 5)
WIDE = 5.0  # times the average variance, from which on Rudman calls a dimension an outlier
_NOTHING = 1e-9  # mean cosine below which shares of it mean nothing


@dataclass(frozen=True)
class Dimension(Plain):
    """One dimension of a site."""

    index: int
    share: float | None  # of the mean cosine; None where that is zero
    low: float | None  # 95 % interval of the share
    high: float | None
    mean: float
    variance_ratio: float  # its variance over the average one
    kurtosis: float | None  # excess: 0 for a Gaussian; None where it does not vary


@dataclass(frozen=True)
class SiteDimensions(Plain):
    """The dimensions of a site that carry the mean cosine, and what cosines are without them.

    `r_squared[k]` is how much of the variance of the cosine of whole vectors the cosine
    without the top k dimensions explains, over all pairs of the sample.
    """

    site: str
    variant: str
    n: int
    d: int
    mean_cosine: float
    top: list[Dimension]  # by share, largest first
    wide: list[int]  # dimensions with five times the average variance or more
    most_kurtotic: list[int]
    r_squared: dict[int, float | None]
    mean_cosine_without: dict[int, float | None]
    sample: int  # rows that kurtosis and r squared rest on
    shares: Array = field(repr=False, metadata={"told": False})
    kurtosis: Array = field(repr=False, metadata={"told": False})

    def indices(self, count: int = 3) -> list[int]:
        """Return the dimensions with the largest shares."""
        return [each.index for each in self.top[:count]]


def rogue_dimensions(
    run: str | os.PathLike[str] | Run,
    sites: Sequence[str] | None = None,
    *,
    variant: str = "all",
    top: Sequence[int] = TOP,
    progress: Callable[[int, int], None] | None = None,
) -> list[SiteDimensions]:
    """Return the dimensions that carry the mean cosine at every site of a run.

    Shares are exact, from the sums of unit vectors: no pairs are drawn. `progress` is told
    how many sites are done, and of how many.
    """
    whole = run_of(run)
    count = len(whole.sites if sites is None else sites)
    found: list[SiteDimensions] = []
    for number, (site, name, here) in enumerate(places_of(whole, sites, variant)):
        if progress is not None:
            progress(number, count)
        if all(kind in here for kind in (Directions, Moments, Reservoir)):
            try:
                found.append(_of_place(site, name, here, tuple(top)))
            except TooFewRowsError:  # a site with one row: the others go on
                continue
    if not found:
        raise TooFewRowsError(
            "expected a site with directions, moments and a sample, got none in the run",
            hint="survey again with mean-cosine, isoscore and uniformity among the measures",
            slug="summary-not-kept",
        )
    return found


def shares_of(seen: Any) -> Array:
    """Return E[CC_i] / A of every dimension; their sum is one."""
    parts = contributions(seen.total, seen.energy)
    whole = parts.sum()
    count = seen.count
    if abs(whole) <= _NOTHING * count * max(count - 1, 1):
        return np.full_like(parts, np.nan)
    return parts / whole


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
    whole = _cosines(rows[both] / lengths[both, None])[pairs]
    without = _cosines(kept[both] / shorter[both, None])[pairs]
    mean = float(without.mean())
    whole -= whole.mean()
    without -= mean
    spread = (whole @ whole) * (without @ without)
    flat = spread <= (1e-14 * len(whole)) ** 2  # rounding is all that is left of them
    return (None if flat else float((whole @ without) ** 2 / spread)), mean


def _cosines(units: Array) -> Array:
    return units @ units.T


def _of_place(
    site: str, variant: str, here: dict[Any, Any], top: tuple[int, ...]
) -> SiteDimensions:
    seen = here[Directions].finalize()
    moments = here[Moments].finalize()
    sample = here[Reservoir].finalize()
    shares, kurtosis = shares_of(seen), excess_kurtosis(sample.rows)
    variance = np.diag(moments.whole.scatter) / moments.count
    average = float(variance.mean())
    ratio = variance / average if average else np.zeros_like(variance)
    parts = contributions(seen.total, seen.energy)
    order = np.argsort(-parts, kind="stable")
    errors = _errors(seen, shares)
    several = min(max(top, default=1), len(order))
    removed = {
        k: cosine_r_squared(sample.rows, order[:k].tolist()) for k in top if k < len(order)
    }
    total = seen.total
    return SiteDimensions(
        site=site,
        variant=variant,
        n=seen.count,
        d=len(order),
        mean_cosine=float(cosine_over_pairs(total @ total, seen.count)),
        top=[
            _dimension(int(i), shares, errors, moments.mean, ratio, kurtosis)
            for i in order[:several]
        ],
        wide=[int(i) for i in np.argsort(-ratio, kind="stable") if ratio[i] >= WIDE],
        most_kurtotic=_largest(kurtosis, several),
        r_squared={k: found[0] for k, found in removed.items()},
        mean_cosine_without={k: found[1] for k, found in removed.items()},
        sample=sample.count,
        shares=shares,
        kurtosis=kurtosis,
    )


def _dimension(
    index: int, shares: Array, errors: Array | None, mean: Array, ratio: Array, kurtosis: Array
) -> Dimension:
    share = _number(shares[index])
    reach = None if errors is None or share is None else float(errors[index])
    return Dimension(
        index=index,
        share=share,
        low=None if reach is None or share is None else share - reach,
        high=None if reach is None or share is None else share + reach,
        mean=float(mean[index]),
        variance_ratio=float(ratio[index]),
        kurtosis=_number(kurtosis[index]),
    )


def _errors(seen: Any, shares: Array) -> Array | None:
    """Return how far from each share its interval reaches, by leaving out groups in turn."""
    if seen.documents < LEAST_DOCUMENTS or seen.groups < LEAST_DOCUMENTS:
        return None
    without = np.array([shares_of(seen.without(group)) for group in range(seen.groups)])
    if not np.isfinite(without).all():
        return None
    reach = quantile(seen.groups - 1)
    columns = zip(shares, without.T, strict=True)
    return np.array([reach * standard_error(s, w, seen.sizes) for s, w in columns])


def _largest(values: Array, count: int) -> list[int]:
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
    return [int(i) for i in order[:count] if np.isfinite(values[i])]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
