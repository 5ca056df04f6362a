"""Products of mean unit vectors, from pairs of rows of different document groups.

Such a product has no noise that does not average out: rows of one document are alike, and a
row is alike itself. Every number comes with what it is without each group in turn, since
leaving out a group takes away only the pairs that it is in.
"""

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.measures.interval import (
    LEAST_DOCUMENTS,
    effective_freedom,
    influences,
    quantile,
)
from isoscope.types import Array


@dataclass(frozen=True)
class Share:
    """A number with its 95 % interval, where there are documents enough."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def is_positive(self) -> bool:
        """Whether the number, and its interval if it has one, is above zero."""
        return self.value > 0 and (self.low is None or self.low > 0)


def pair_products(left: Array, right: Array) -> Array:
    """Return sums of left_g . right_h over all groups g and h that differ, (1 + groups, k).

    `left` and `right` are (groups, k, d). First of all groups, then without each of them.
    """
    whole_left, whole_right = left.sum(axis=0), right.sum(axis=0)
    own = np.vecdot(left, right)  # (groups, k)
    whole = np.vecdot(whole_left, whole_right) - own.sum(axis=0)  # (k,)
    taken = np.vecdot(left, whole_right) + np.vecdot(whole_left, right) - 2 * own
    return np.concatenate([whole[None], whole - taken])


def row_pairs(left: Array, right: Array) -> Array:
    """Return how many pairs of rows of different groups there are, from rows (groups, k)."""
    return pair_products(left[:, :, None], right[:, :, None])


def totals(rows: Array) -> Array:
    """Return sums of (groups, k), of all groups and then without each, (1 + groups, k)."""
    whole = rows.sum(axis=0)
    return np.concatenate([whole[None], whole - rows])


def mean_cosine(units: Array, rows: Array) -> Array:
    """Return the mean cosine of rows of different groups, (1 + groups,).

    From sums of unit vectors (groups, d) and numbers of rows (groups,).
    """
    return within_cells(units[:, None], rows[:, None])


def within_cells(units: Array, rows: Array) -> Array:
    """Return the mean cosine of a row and a partner from its own cell, (1 + groups,).

    T = sum of w_c |m_c|^2 over cells c, from units (groups, k, d) and rows (groups, k).
    """
    weights, pairs = totals(rows), row_pairs(rows, rows)
    with np.errstate(divide="ignore", invalid="ignore"):  # without a group there is no pair
        alike = pair_products(units, units) / pairs
    return np.vecdot(weights, np.where(weights > 0, alike, 0.0)) / weights.sum(axis=1)


@dataclass(frozen=True)
class GroupSizes:
    """What intervals are computed from: rows in each group, and how many documents."""

    sizes: Array  # (groups,)
    documents: int

    def share(self, values: Array) -> Share:
        """Return a number from itself and what it is without each group, (1 + groups,)."""
        value = float(values[0])
        enough = min(self.documents, len(self.sizes)) >= LEAST_DOCUMENTS
        if not enough or not np.isfinite(values).all():
            return Share(value)
        parts = influences(value, values[1:], self.sizes)
        reach = quantile(effective_freedom(parts)) * float(np.sqrt(parts @ parts))
        return Share(value, value - reach, value + reach)


def join_cells(rows: Array, least: int) -> list[list[int]]:
    """Return which neighbouring cells to join so that each is seen in `least` groups.

    `rows` is (groups, cells). Cells that are seen in enough groups stay as they are, unless a
    neighbour has to be joined with them. Of those without rows nothing is said.
    """
    seen = [cell for cell in range(rows.shape[1]) if rows[:, cell].any()]
    joined: list[list[int]] = []
    waiting: list[int] = []
    for cell in seen:
        waiting.append(cell)
        if _groups_of(rows, waiting) >= least:
            joined.append(waiting)
            waiting = []
    if waiting and joined:
        joined[-1] = joined[-1] + waiting
    elif waiting:
        joined.append(waiting)
    return joined


def _groups_of(rows: Array, cells: list[int]) -> int:
    return int(np.count_nonzero(rows[:, cells].sum(axis=1)))
