"""The picture of an embedding matrix: its rows along two singular vectors, by frequency."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from isoscope.types import Array, MatrixCells

CELLS = 56  # each way
BANDS = ("not seen", "1 to 9 times", "10 to 99 times", "100 times or more")
UNKNOWN = "not known"
_LARGEST = 2**21  # rows of a matrix whose keys are worked out to find tokens again


def picture(
    here: Mapping[Any, Any], site: str, counts: "Counts | None", seed: int
) -> MatrixCells | None:
    """Return the cells of one matrix, or None where its rows were not sampled."""
    from threadpoolctl import threadpool_limits

    from isoscope.accumulate import Moments, Reservoir

    if Moments not in here or Reservoir not in here or here[Reservoir].count < 3:
        return None
    moments, sample = here[Moments].finalize(), here[Reservoir].finalize()
    second = moments.whole.scatter / moments.count + np.outer(moments.mean, moments.mean)
    with threadpool_limits(1):
        axes = np.linalg.eigh(second)[1][:, ::-1][:, :2]
    axes = axes * np.where(axes.sum(axis=0) < 0, -1.0, 1.0)  # eigenvectors have no sign
    if axes.shape[1] < 2:
        return None
    points = sample.rows.astype(np.float64) @ axes
    names, band = [UNKNOWN], np.zeros(len(points), dtype=int)
    if counts is not None and moments.count <= _LARGEST:
        tokens = tokens_of(sample.documents, site, moments.count, seed)
        names, band = [*BANDS, UNKNOWN], counts.bands(tokens)
    return MatrixCells(
        site, "all", *_cells(points, band), bands=tuple(names), of=int(moments.count)
    )


class Counts:
    """How often tokens were seen, of the types that a survey kept."""

    def __init__(self, vocabulary: Any) -> None:
        known = vocabulary.finalize()
        self.limit = np.uint64(2**64 - 1) if known.complete else known.hashes.max()
        self.seen = dict(zip(known.tokens.tolist(), known.nonzero.tolist(), strict=True))

    def bands(self, tokens: Array) -> Array:
        """Return the band of each token; one past the last where it is not known."""
        from isoscope.hashing import type_hashes

        inside = (tokens >= 0) & (type_hashes(np.maximum(tokens, 0)) <= self.limit)
        times = np.array([self.seen.get(token, 0.0) for token in tokens.tolist()])
        return np.where(inside, np.digitize(times, (0.5, 9.5, 99.5)), len(BANDS))


def tokens_of(documents: Array, site: str, rows: int, seed: int) -> Array:
    """Return which row of the matrix each key is of; -1 where it is none."""
    from isoscope.hashing import ordinal_documents

    keys = ordinal_documents(site, np.arange(rows, dtype=np.uint64), seed=seed)
    order = np.argsort(keys)
    place = np.minimum(np.searchsorted(keys[order], documents), rows - 1)
    found = order[place]
    return np.where(keys[found] == documents, found, -1)


def _cells(points: Array, band: Array) -> tuple[Array, Array, Array, Array]:
    """Return where each cell lies (x, y), its rows, and its band."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1.0) / CELLS
    at = np.minimum(((points - low) / size).astype(int), CELLS - 1)
    cells, where, rows = np.unique(
        np.column_stack([at, band]), axis=0, return_inverse=True, return_counts=True
    )
    x, y = (np.bincount(where, points[:, axis]) / rows for axis in (0, 1))
    return x, y, rows, cells[:, 2]
