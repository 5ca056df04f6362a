"""Debiased IsoScore: what would IsoScore read with endless rows?"""

from math import exp, log, sqrt

import numpy as np

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.interval import FARTHEST, LEAST_DOCUMENTS, Spread, quantile
from isoscope.measures.isoscore import from_ratio
from isoscope.measures.view import Halves
from isoscope.measures.view.parts import SampledParts, SketchedParts
from isoscope.types import Array

_ROUNDING = 1e-12  # of the sums whose difference is taken; orthogonal rows leave nothing else


def himeno_yamada(count: float, scatter: Array, quartic: float) -> float:
    """Participation ratio from unbiased tr(Sigma^2) and (tr Sigma)^2 of independent rows.

        k = (n-1) / (n (n-2) (n-3)),   Q = sum |y|^4 / (n-1)
        B = k [(n-1)(n-2) f + t^2 - n Q],   A = k [2 f + (n^2-3n+1) t^2 - n Q]

    with t = tr C and f = |C|_F^2; the ratio is A / B.
    """
    length = float(np.einsum("ij,ij->", scatter, scatter))
    return from_sums(count, float(np.trace(scatter)), length, quartic)


def from_sums(n: float, trace: float, length: float, quartic: float) -> float:
    """Return Himeno and Yamada's ratio, given trace and squared length of the scatter."""
    t, f, q = trace / (n - 1), length / (n - 1) ** 2, quartic / (n - 1)
    squared = (n - 1) * (n - 2) * f + t * t - n * q
    spread = 2 * f + (n * n - 3 * n + 1) * t * t - n * q
    if squared <= _ROUNDING * (n * n * f) or t <= 0:
        raise UndefinedError(
            "isoscore-debiased needs rows that differ in at least two ways, got fewer",
            hint="check how the vectors were made; nearly all of them are the same",
            slug="no-spread",
        )
    return spread / squared


def across_halves(seen: Halves) -> float:
    """Participation ratio from products across the halves: t_a t_b / <C_a, C_b>."""
    traces, product = seen.products
    if product <= 0 or traces <= 0:
        raise UndefinedError(
            "isoscore-debiased needs variance shared by both halves, got none",
            hint="give more documents",
            slug="no-spread",
        )
    return traces / product


def _ratio_bias(seen: Halves) -> float:
    """Return by how much the ratio is too large on average, relative to itself.

    To second order E[T / F] = E T / E F (1 + var F / F^2 - cov(T, F) / (T F)): few documents
    that differ along few directions leave F uncertain, and its inverse too large. Variances
    are over groups of documents, of each half on its own.
    """
    bias = 0.0
    for half in seen.shares:
        groups = len(half.rows)
        if groups > 1:
            off = half.product - half.rows
            bias += groups / (groups - 1) * float(off @ (half.product - half.trace))
    return max(bias, 0.0)


def unbiased_ratio(seen: Halves) -> float:
    """Return the participation ratio of the population as estimated."""
    whole = seen.moments.whole
    if seen.moments.independent:
        if whole.count < 4:
            raise TooFewRowsError(
                f"isoscore-debiased needs at least 4 rows, got {int(whole.count)}",
                hint="give more rows; below 32 it is unreliable",
                slug="too-few-rows",
            )
        return himeno_yamada(whole.count, whole.scatter, whole.quartic)
    return max(across_halves(seen) / (1 + _ratio_bias(seen)), 1.0)


def log_spread(seen: Halves) -> Spread | None:
    """What each group adds to the error of the log of the ratio."""
    parts = seen.parts
    if parts is None or min(seen.documents, len(parts.sizes)) < LEAST_DOCUMENTS:
        return None
    try:
        if isinstance(parts, SampledParts):
            return _of_rows(seen, parts)
        return _of_documents(seen, parts)
    except (TooFewRowsError, UndefinedError):
        return None


def _of_rows(seen: Halves, parts: SampledParts) -> Spread:
    """Leave groups of sampled rows out of Himeno and Yamada's sums, exactly."""
    whole, groups = seen.moments.whole, seen.fourths
    trace = float(np.trace(whole.scatter))
    length = float(np.einsum("ij,ij->", whole.scatter, whole.scatter))
    value = log(from_sums(whole.count, trace, length, whole.quartic))
    without = np.array(
        [
            log(
                from_sums(
                    whole.count - n, trace - t, length - 2 * pull + own, whole.quartic - q
                )
            )
            for n, t, own, q, pull in groups
        ]
    )
    influence = (value - without) * (whole.count - groups[:, 0]) / whole.count
    influence -= influence.mean()
    influence *= sqrt(len(groups) / (len(groups) - 1)) * parts.thinning * parts.scale
    return Spread(influence, parts.keys)


def _of_documents(seen: Halves, parts: SketchedParts) -> Spread | None:
    """Leave groups of documents out of the half they are in."""
    across_halves(seen)  # raises where it is not defined
    total = np.zeros(len(parts.keys))
    for number, half in enumerate(seen.shares):
        groups = len(half.rows)
        if groups < 2:
            return None
        if (half.trace >= 1).any() or (half.product >= 1).any():
            return None  # one group has all the variance of its half
        # log(t_a / F) without each group; the factors 1 / (n - 1) of the two cancel
        influence = np.log1p(-half.product) - np.log1p(-half.trace)
        total[parts.groups.halves == number] = influence * sqrt((groups - 1) / groups)
    return Spread(total, parts.keys, lost=2)


def _interval(seen: Halves, value: float, _published: bool) -> tuple[float, float] | None:
    found = log_spread(seen)
    d = seen.moments.width
    ratio = value * (d - 1) + 1
    if found is None or not np.isfinite(found.error) or ratio <= 0:
        return None
    reach = quantile(found.freedom) * found.error
    if reach > FARTHEST:
        return None
    low, high = (exp(log(ratio) + side * reach) for side in (-1, 1))
    return from_ratio(low, d), from_ratio(high, d)


def _spread(seen: Halves, value: float, _published: bool) -> Spread | None:
    """Return the spread of the ratio's logarithm, carried over to the score itself."""
    found = log_spread(seen)
    if found is None or not np.isfinite(found.error):
        return None
    slope = value + 1 / (seen.moments.width - 1)  # of the score in the ratio's logarithm
    return Spread(found.parts * slope, found.keys, found.lost)


@measure(
    "isoscore-debiased",
    reads=Halves,
    isotropic=1.0,
    collapsed=0.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="himeno2014",
    formula="(PR - 1) / (d - 1) with unbiased (tr Sigma)^2 and tr(Sigma^2)",
    misleads="Not bounded by 1: white rows read above 1 half of the time. Below 32 rows or "
    "documents it is unreliable. Blind to the mean, as IsoScore is.",
    interval=_interval,
    spread=_spread,
    bounds=(0.0, None),
)
def isoscore_debiased(seen: Halves) -> float:
    """IsoScore of the population: free of the bias of few rows or few documents.

    Independent rows: Himeno and Yamada's unbiased estimators. Rows in documents: only
    products across two halves of the documents, so that no document meets itself, of
    covariances to which the variance between documents that few of them lack was added.
    """
    return from_ratio(unbiased_ratio(seen), seen.moments.width)
