"""Curves of a site for a page: spectrum, dimensions, sinks and causes, from its summaries."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import StoreError, TooFewRowsError, UndefinedError
from isoscope.types import (
    CauseShare,
    CauseShares,
    Curve,
    DimensionScores,
    SinkShare,
    Spectrum,
)

if TYPE_CHECKING:
    from isoscope.accumulate import MomentsSummary
    from isoscope.accumulate.survey import Survey

POINTS = 96  # of a spectrum, evenly on a logarithmic axis
CELLS = 128  # across a heat map
Held = Mapping[Any, Any]


@dataclass(frozen=True)
class SiteCurves:
    """What is drawn of a site, and how many independent rows each variant is worth."""

    curves: list[Curve]
    effective: dict[str, float]  # by variant


def curves_of(survey: "Survey", site: str, run: str) -> SiteCurves:
    """Return the curves of one site, each where its summaries were kept."""
    from isoscope.accumulate import Moments, accumulator_of
    from isoscope.accumulate.survey import variants

    found: list[Curve] = []
    effective: dict[str, float] = {}
    moments: dict[str, MomentsSummary] = {}
    for _, alike, here in variants(survey.held):
        with suppress(TooFewRowsError, UndefinedError, KeyError):
            summary = accumulator_of(here, Moments).finalize()
            rows = effective_rows(summary)
            for variant in alike:
                moments[variant], effective[variant] = summary, rows
            found.append(spectrum_of(summary, rows, site, alike[0]))
            found.append(scores_of(summary, site, alike[0]))
    found += _sinks(site, moments)
    found += _causes(survey.held, site, run)
    return SiteCurves(found, effective)


def effective_rows(moments: "MomentsSummary") -> float:
    """Return how many independent rows would bias tr C^2 as much as these documents do.

    With m independent rows E tr C^2 = tr S^2 (1 + 1/m) + (tr S)^2 / m. The left side is the
    plain value, tr S^2 is known without bias from the two halves, and m is left. Never more
    than there are rows, nor less than there are documents.
    """
    n = float(moments.count)
    if moments.independent:
        return n
    first, second = moments.halves
    least = float(min(max(moments.documents - 1, 2), n))
    if min(first.count, second.count) < 2:
        return least
    whole = moments.covariance
    a, b = (half.scatter / (half.count - 1) for half in (first, second))
    plain = float(np.vdot(whole, whole)) / float(np.trace(whole)) ** 2
    traces = float(np.trace(a)) * float(np.trace(b))
    if traces <= 0:
        return least
    unbiased = float(np.vdot(a, b)) / traces
    if plain <= unbiased:
        return n
    return float(np.clip((1 + unbiased) / (plain - unbiased), least, n))


def spectrum_of(
    moments: "MomentsSummary", rows: float, site: str = "rows", variant: str = "all"
) -> Spectrum:
    """Return eigenvalues over their average at a few ranks, and those of an isotropic cloud."""
    from threadpoolctl import threadpool_limits

    from isoscope.measures.view import isotropic_spectrum

    with threadpool_limits(1):
        values = np.linalg.eigvalsh(moments.covariance)[::-1]
    width = len(values)
    rank = min(moments.count - 1, width)
    rounding = values[0] * width * np.finfo(np.float32).eps  # rows of a norm lack a direction
    values = np.where((np.arange(width) < rank) & (values > rounding), values, 0.0)
    mean = values.mean()
    if not mean > 0:
        raise UndefinedError(
            "a spectrum needs rows that differ, got identical rows",
            hint="check how the vectors were made; all of them are the same",
            slug="no-spread",
        )
    places = np.arange(width)
    if width > POINTS:
        places = np.unique(np.geomspace(1, width, POINTS).round().astype(int)) - 1
    white = isotropic_spectrum(max(int(rows), 2), width)
    return Spectrum(
        site,
        variant,
        rank=places + 1,
        value=values[places] / mean,
        isotropic=white[places] / white.mean(),
        rows=float(rows),
    )


def scores_of(
    moments: "MomentsSummary", site: str = "rows", variant: str = "all"
) -> DimensionScores:
    """Return the mean square of dimensions over their average, the largest of each cell."""
    square = np.diag(moments.whole.scatter) / moments.count + moments.mean**2
    average = float(square.mean())
    score = square / average if average > 0 else np.ones_like(square)
    edges = np.linspace(0, len(score), min(CELLS, len(score)) + 1).round().astype(int)
    largest = np.array([int(a + np.argmax(score[a:b])) for a, b in pairwise(edges)])
    return DimensionScores(
        site, variant, first=edges[:-1], end=edges[1:], largest=largest, score=score[largest]
    )


def _sinks(site: str, moments: Mapping[str, "MomentsSummary"]) -> list[SinkShare]:
    """Return how much of the variance goes when sinks are excluded, where there are any."""
    whole, without = moments.get("all"), moments.get("no-sink")
    if whole is None or without is None or whole.count == without.count:
        return []
    before, after = (float(np.trace(each.whole.scatter)) for each in (whole, without))
    if before <= 0:
        return []
    return [
        SinkShare(
            site,
            "all",
            share=max(1.0 - after / before, 0.0),
            rows=int(whole.count - without.count),
            n=int(whole.count),
            documents=int(whole.documents),
        )
    ]


def _causes(held: Mapping[tuple[str, str], Held], site: str, run: str) -> list[CauseShares]:
    from isoscope.lab.explain.results import explained

    try:
        causes = explained(held, site, "all", run)
    except (StoreError, TooFewRowsError, UndefinedError):
        return []
    if not causes or not all(np.isfinite(each.share) for each in causes):
        return []
    shares = (
        CauseShare(each.cause, each.share, each.low, each.high, each.detail, bool(each.named))
        for each in causes
    )
    first = causes[0]
    return [CauseShares(site, "all", first.mean_cosine, tuple(shares), first.warnings)]
