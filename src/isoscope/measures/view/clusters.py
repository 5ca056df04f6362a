"""Clusters of the sample: k-means, their number chosen by silhouette."""

from collections.abc import Iterator
from typing import Self

import numpy as np

from isoscope.accumulate import Reservoir
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError
from isoscope.measures.view.summaries import GroupView, Summaries
from isoscope.types import Array

MOST = 15  # clusters
APART = 0.1  # mean silhouette below which there is one cluster
_STEPS = 50  # of Lloyd
_POWERS = 20  # steps to the longest axis of a cluster
EQUAL = 1e-6  # of the largest: differences that float32 rounds away


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
        rows = _centre_and_scale(sample.rows)
        labels, silhouette = cluster(rows)
        number = int(labels.max()) + 1
        about = rows - _means(rows, labels)[labels]
        norms = np.sqrt(np.vecdot(about, about))
        spread = norms > 1e-9 * np.sqrt(np.vecdot(rows, rows).max())
        unit = about[spread] / norms[spread, None]
        # unit vectors summed by group of documents and cluster
        groups = len(sample.keys)
        place = (sample.cells * number + labels)[spread]
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
    for labels in k_means(rows, min(MOST, len(rows) - 1)):
        height = silhouette(gaps, labels)
        if height > best + EQUAL:
            best, chosen = height, labels
    return (chosen, best) if best >= APART else (np.zeros_like(chosen), best)


def k_means(rows: Array, most: int) -> Iterator[Array]:
    """Yield the cluster of each row, for two clusters and for each number up to `most`.

    Lloyd's steps from the clusters of one number less, of which the one that becomes
    tightest is cut in two. Nothing is drawn and nothing depends on the order of rows. Rows
    that are off by rounding end in the same clusters, unless two ways are equally good.
    """
    centres, labels = rows.mean(axis=0, keepdims=True), np.zeros(len(rows), dtype=np.int64)
    for _ in range(2, most + 1):
        halves = [_cut(rows[labels == each]) for each in range(len(centres))]
        gains = np.array([gain for _, gain in halves])
        cut = int(np.argmax(gains >= gains.max() * (1 - EQUAL)))
        centres, labels = _lloyd(
            rows, np.concatenate([centres[:cut], centres[cut + 1 :], halves[cut][0]])
        )
        yield labels


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


def _cut(rows: Array) -> tuple[Array, float]:
    """Return the centres of two halves of a cluster, and by how much they are tighter.

    It is cut at the mean across its longest axis, which is found by steps of the power
    method: a fixed number of them, so that the axis moves with the rows and never jumps.
    """
    about = rows - rows.mean(axis=0)
    squares = np.vecdot(about, about)
    if len(rows) < 2 or not squares.max() > 0:
        return np.repeat(rows[:1], 2, axis=0), 0.0
    about /= np.sqrt(squares.max())
    axis = about[_first(about, squares >= squares.max() * (1 - EQUAL))]
    for _ in range(_POWERS):
        axis = (about @ axis) @ about
        axis /= np.sqrt(axis @ axis)
    along = about @ axis
    upper = along >= -EQUAL * np.abs(along).max()
    if upper.all():
        return np.repeat(rows[:1], 2, axis=0), 0.0
    starts = np.stack([rows[~upper].mean(axis=0), rows[upper].mean(axis=0)])
    centres, labels = _lloyd(rows, starts)
    off = rows - centres[labels]
    return centres, float(squares.sum() - np.vecdot(off, off).sum())


def _first(rows: Array, chosen: Array) -> int:
    """Return which of the chosen rows comes first in the order of its numbers."""
    places = np.flatnonzero(chosen)
    return int(places[np.lexsort(rows[places].T[::-1])[0]])


def _lloyd(rows: Array, centres: Array) -> tuple[Array, Array]:
    """Return centres and the cluster of each row; clusters without rows are dropped.

    A row between two centres belongs to the first of them, however it is rounded.
    """
    labels = np.full(len(rows), -1)
    for _ in range(_STEPS):
        gaps = _squared_gaps(rows, centres)
        near = gaps.min(axis=1) + EQUAL * gaps.max()
        fresh = np.argmax(gaps <= near[:, None], axis=1)
        if np.array_equal(fresh, labels):
            break
        labels = fresh
        member = np.eye(len(centres))[labels]
        sizes = member.sum(axis=0)
        means = (member.T @ rows) / np.maximum(sizes, 1)[:, None]
        centres = np.where(sizes[:, None] > 0, means, centres)
    used, labels = np.unique(labels, return_inverse=True)
    return centres[used], labels
