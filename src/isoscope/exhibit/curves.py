"""Curves of a page from the summaries of a site: spectrum, dimensions, sinks, causes, matrix.

The rows of an embedding matrix are projected on its first two singular vectors and counted
in cells, by how often their tokens occur.
"""

from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise

import numpy as np

from isoscope.accumulate import (
    Moments,
    MomentsSummary,
    Reservoir,
    VocabularySummary,
    accumulator_of,
)
from isoscope.accumulate.survey import Survey, variants
from isoscope.blas import one_blas_thread
from isoscope.causes.cause import site_causes
from isoscope.errors import StoreError, TooFewRowsError, UndefinedError
from isoscope.hashing import ordinal_documents, type_hashes
from isoscope.measures.view.spectrum import effective_rows, spectrum_curve
from isoscope.types import (
    Array,
    CauseShare,
    CauseShares,
    Curve,
    DimensionScores,
    MatrixCells,
    SinkShare,
)

HEAT_CELLS = 128  # across a heat map of dimensions
MATRIX_CELLS = 56  # along each axis of a projected matrix
BANDS = ("not seen", "1 to 9 times", "10 to 99 times", "100 times or more")
UNKNOWN = "not known"
_LARGEST = 2**21  # rows of a matrix whose keys are computed to identify tokens


def curves_of(survey: Survey, site: str, run: str) -> tuple[list[Curve], dict[str, float]]:
    """Return the curves of one site, as far as its summaries are stored.

    Also the effective number of rows of each variant.
    """
    found: list[Curve] = []
    effective: dict[str, float] = {}
    moments: dict[str, MomentsSummary] = {}
    for _, alike, here in variants(survey.held):
        with suppress(TooFewRowsError, UndefinedError, KeyError):
            summary = accumulator_of(here, Moments).finalize()
            rows = effective_rows(summary)
            for variant in alike:
                moments[variant], effective[variant] = summary, rows
            found.append(spectrum_curve(summary, rows, site, alike[0]))
            found.append(dimension_scores(summary, site, alike[0]))
    found += [*_sink_share(site, moments), *_cause_shares(survey, site, run)]
    return found, effective


def dimension_scores(
    moments: MomentsSummary, site: str = "rows", variant: str = "all"
) -> DimensionScores:
    """Return mean squares of dimensions divided by their average, the largest per cell."""
    # (d,) mean squares
    square = np.diag(moments.whole.scatter) / moments.count + moments.mean**2
    average = float(square.mean())
    score = square / average if average > 0 else np.ones_like(square)
    edges = np.linspace(0, len(score), min(HEAT_CELLS, len(score)) + 1).round().astype(int)
    largest = np.array([int(a + np.argmax(score[a:b])) for a, b in pairwise(edges)])
    return DimensionScores(
        site, variant, first=edges[:-1], end=edges[1:], largest=largest, score=score[largest]
    )


def _sink_share(site: str, moments: Mapping[str, MomentsSummary]) -> list[SinkShare]:
    """Return the share of the variance that sinks have, where there are any."""
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


def _cause_shares(survey: Survey, site: str, run: str) -> list[CauseShares]:
    try:
        causes = site_causes(survey.held, site, "all", run)
    except (StoreError, TooFewRowsError, UndefinedError):
        return []
    if not causes or not all(np.isfinite(each.share) for each in causes):
        return []
    shares = (
        CauseShare(
            each.cause,
            each.share,
            each.low,
            each.high,
            each.detail,
            bool(each.named),
            first=each.first,
            last=each.last,
            falls_to=each.falls_to,
        )
        for each in causes
    )
    first = causes[0]
    return [CauseShares(site, "all", first.mean_cosine, tuple(shares), first.warnings)]


def matrix_cells(
    survey: Survey, site: str, counts: "TokenCounts | None", seed: int
) -> MatrixCells | None:
    """Return the rows of a matrix along its first two singular vectors, counted in cells.

    None where the rows of the matrix were not sampled.
    """
    here = survey.held.get((site, "all"), {})
    if Moments not in here or Reservoir not in here or here[Reservoir].count < 3:
        return None
    moments = accumulator_of(here, Moments).finalize()
    sample = accumulator_of(here, Reservoir).finalize()

    # (d, d) second moments; their eigenvectors are the right singular vectors of the matrix
    second = moments.whole.scatter / moments.count + np.outer(moments.mean, moments.mean)
    with one_blas_thread():
        axes = np.linalg.eigh(second)[1][:, ::-1][:, :2]
    axes = axes * np.where(axes.sum(axis=0) < 0, -1.0, 1.0)  # eigenvectors have no sign
    if axes.shape[1] < 2:
        return None
    # (sampled, 2)
    points = sample.rows.astype(np.float64) @ axes
    names, band = [UNKNOWN], np.zeros(len(points), dtype=int)
    if counts is not None and moments.count <= _LARGEST:
        tokens = matrix_rows(sample.documents, site, moments.count, seed)
        names, band = [*BANDS, UNKNOWN], counts.bands(tokens)
    return MatrixCells(
        site, "all", *_count_cells(points, band), bands=tuple(names), of=int(moments.count)
    )


class TokenCounts:
    """How often tokens occur, for the token types that a survey sampled."""

    def __init__(self, known: VocabularySummary) -> None:
        self.limit = np.uint64(2**64 - 1) if known.complete else known.hashes.max()
        self.seen = dict(zip(known.tokens.tolist(), known.nonzero.tolist(), strict=True))

    def bands(self, tokens: Array) -> Array:
        """Return the band of each token; one past the last where the count is not known."""
        inside = (tokens >= 0) & (type_hashes(np.maximum(tokens, 0)) <= self.limit)
        times = np.array([self.seen.get(token, 0.0) for token in tokens.tolist()])
        return np.where(inside, np.digitize(times, (0.5, 9.5, 99.5)), len(BANDS))


def matrix_rows(documents: Array, site: str, rows: int, seed: int) -> Array:
    """Return the row of the matrix, a token, that each document key stands for; -1 for none."""
    keys = ordinal_documents(site, np.arange(rows, dtype=np.uint64), seed=seed)
    order = np.argsort(keys)
    found = order[np.minimum(np.searchsorted(keys[order], documents), rows - 1)]
    return np.where(keys[found] == documents, found, -1)


def _count_cells(points: Array, band: Array) -> tuple[Array, Array, Array, Array]:
    """Return x, y, number of rows and band of each cell."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1.0) / MATRIX_CELLS
    at = np.minimum(((points - low) / size).astype(int), MATRIX_CELLS - 1)
    cells, where, rows = np.unique(
        np.column_stack([at, band]), axis=0, return_inverse=True, return_counts=True
    )
    x, y = (np.bincount(where, points[:, axis]) / rows for axis in (0, 1))
    return x, y, rows, cells[:, 2]
