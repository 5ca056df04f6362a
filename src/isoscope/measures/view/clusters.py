"""Clusters of the sample: k-means, their number chosen by silhouette."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isoscope.accumulate import Reservoir
from isoscope.errors import TooFewRowsError
from isoscope.measures.view.summaries import GroupView, Summaries
from isoscope.types import Array

MOST = 15  # clusters
APART = 0.1  # mean silhouette below which there is one cluster
_STARTS = 4  # of k-means; the tightest result is taken
_STEPS = 50
EQUAL = 1e-9  # of the largest squared distance: gaps that are no more than rounding


@dataclass(frozen=True, kw_only=True)
class Clusters(GroupView):
    """Unit vectors of the sampled rows about the mean of their cluster, summed.

    The clusters stay as they are when a group is excluded.
    """

    needs = (Reservoir,)
    arrays = ("nonzero", "units")
    nonzero: Array  # (groups, clusters) rows with a direction
    units: Array  # (groups, clusters, d)
    number: int
    silhouette: float

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the clusters of the distinct rows of the sample."""
        sample = summaries.of(Reservoir).distinct()
        documents = len(np.unique(sample.documents))
        if documents <= MOST:
            what = "distinct rows" if sample.independent else "documents"
            raise TooFewRowsError(
                f"cluster-isotropy looks for up to {MOST} clusters and needs more {what} "
                f"than that, got {documents}",
                hint="give more documents; copies of a row count once",
                slug="too-few-documents",
            )
        # The starts of k-means are drawn by number. Rows of documents come in the order of
        # their hashes; the hash of a row without one changes with its place in the file.
        order = _order(sample.rows) if sample.independent else np.arange(sample.count)
        rows = _centre_and_scale(sample.rows[order])
        labels, silhouette = cluster(rows)
        number = int(labels.max()) + 1
        about = rows - _means(rows, labels)[labels]
        norms = np.sqrt(np.vecdot(about, about))
        spread = norms > 1e-9 * np.sqrt(np.vecdot(rows, rows).max())
        unit = about[spread] / norms[spread, None]
        # unit vectors summed by group of documents and cluster
        groups = len(sample.keys)
        place = (sample.cells[order] * number + labels)[spread]
        units = np.zeros((groups * number, rows.shape[1]))
        np.add.at(units, place, unit)
        nonzero = np.bincount(place, minlength=groups * number).astype(np.float64)
        nonzero = nonzero.reshape(groups, number)
        return cls(
            keys=sample.keys,
            sizes=nonzero.sum(axis=1),
            documents=documents,
            nonzero=nonzero,
            units=units.reshape(groups, number, -1),
            number=number,
            silhouette=silhouette,
        )


def cluster(rows: Array) -> tuple[Array, float]:
    """Return the cluster of each row, and the mean silhouette; one cluster where it is low."""
    gaps = np.sqrt(np.maximum(_squared_gaps(rows, rows), 0.0))
    np.fill_diagonal(gaps, 0.0)
    best, chosen = -1.0, np.zeros(len(rows), dtype=np.int64)
    for number in range(2, min(MOST, len(rows) - 1) + 1):
        labels = k_means(rows, number)
        height = silhouette(gaps, labels)
        if height > best:
            best, chosen = height, labels
    return (chosen, best) if best >= APART else (np.zeros_like(chosen), best)


def k_means(rows: Array, number: int) -> Array:
    """Return the cluster of each row: Lloyd's steps from several spread-out starts."""
    rng = np.random.Generator(np.random.PCG64([number, len(rows)]))
    ends = [_lloyd(rows, _spread_out(rows, number, rng)) for _ in range(_STARTS)]
    return min(ends, key=lambda end: end[1])[0]


def silhouette(gaps: Array, labels: Array) -> float:
    """Return the mean over rows of (b - a) / max(a, b).

    a is the mean distance to the others of its cluster, b that to the nearest other
    cluster; a row alone in its cluster counts as 0.
    """
    member = np.eye(int(labels.max()) + 1)[labels]  # (m, clusters)
    sizes = member.sum(axis=0)
    if (sizes > 0).sum() < 2:
        return -1.0
    sums = gaps @ member
    own = np.arange(len(labels)), labels
    inside = sums[own] / np.maximum(sizes[labels] - 1, 1)
    sums /= np.maximum(sizes, 1)
    sums[:, sizes == 0] = np.inf
    sums[own] = np.inf
    outside = sums.min(axis=1)
    largest = np.maximum(inside, outside)
    heights = (outside - inside) / np.where(largest > 0, largest, 1.0)
    return float(np.where(sizes[labels] > 1, heights, 0.0).mean())


def _order(rows: Array) -> Array:
    """Return an order of rows that depends neither on how they came nor on the axes.

    By distance from the mean; of equally distant rows by their numbers.
    """
    wide = _centre_and_scale(rows)
    wide -= wide.mean(axis=0)
    far = np.vecdot(wide, wide)
    order = np.argsort(far, kind="stable")
    near = np.diff(far[order]) <= EQUAL * far.max(initial=0.0)
    if not near.any():
        return order
    level = np.empty(len(rows), dtype=np.int64)
    level[order] = np.concatenate([[0], np.cumsum(~near)])
    return np.lexsort((*rows.T, level))


def _centre_and_scale(rows: Array) -> Array:
    """Return rows about their median, in float64, of a size whose squares are numbers."""
    wide = rows.astype(np.float64)
    wide -= np.median(wide, axis=0)
    return np.ldexp(wide, -int(np.frexp(np.abs(wide).max(initial=0.0))[1]))


def _squared_gaps(left: Array, right: Array) -> Array:
    cross = left @ right.T
    cross *= -2
    cross += np.vecdot(left, left)[:, None]
    cross += np.vecdot(right, right)
    return cross


def _means(rows: Array, labels: Array) -> Array:
    member = np.eye(int(labels.max()) + 1)[labels]
    return (member.T @ rows) / np.maximum(member.sum(axis=0), 1)[:, None]


def _spread_out(rows: Array, number: int, rng: np.random.Generator) -> Array:
    """Return rows to start from: each drawn in proportion to its squared distance."""
    chosen = [int(rng.integers(len(rows)))]
    near = np.maximum(_squared_gaps(rows, rows[chosen])[:, 0], 0.0)
    for _ in range(number - 1):
        along = np.cumsum(near)
        chosen.append(int(np.searchsorted(along, rng.random() * along[-1], side="right")))
        chosen[-1] = min(chosen[-1], len(rows) - 1)
        near = np.minimum(near, np.maximum(_squared_gaps(rows, rows[chosen[-1:]])[:, 0], 0.0))
    return rows[chosen]


def _lloyd(rows: Array, centres: Array) -> tuple[Array, float]:
    """Return clusters and the sum of squared distances; a centre without rows stays."""
    labels = np.full(len(rows), -1)
    for _ in range(_STEPS):
        fresh = _squared_gaps(rows, centres).argmin(axis=1)
        if np.array_equal(fresh, labels):
            break
        labels = fresh
        member = np.eye(len(centres))[labels]
        sizes = member.sum(axis=0)
        means = (member.T @ rows) / np.maximum(sizes, 1)[:, None]
        centres = np.where(sizes[:, None] > 0, means, centres)
    tight = float(np.maximum(_squared_gaps(rows, centres).min(axis=1), 0.0).sum())
    return np.unique(labels, return_inverse=True)[1], tight
