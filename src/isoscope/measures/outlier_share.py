"""Outlier share: how much of the mean cosine is owed to three dimensions?"""

from math import sqrt

import numpy as np

from isoscope.accumulate.directions import contributions
from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.interval import at_once, sum_of_others
from isoscope.measures.view import Units
from isoscope.types import Array

TOP = 3
LEAST_GROUPS = 4  # of documents in each half, from which on the choice is corrected


def largest(parts: Array) -> Array:
    """Return the three dimensions that contribute most."""
    return np.argsort(parts, kind="stable")[-TOP:]


def optimism(seen: Units) -> float:
    """Return by how much the largest contributions are too large, per pair of rows.

    The largest are partly those with luck. What is chosen on one half of the documents has
    luck there and none on the other: the difference is the luck of a half, which is the
    root of two times that of the whole. It is zero where both halves choose the same.
    """
    half = seen.keys % np.uint64(2) == 1
    if min(half.sum(), (~half).sum()) < LEAST_GROUPS:
        return 0.0
    means: list[Array] = []  # (d,) each
    for chosen in (half, ~half):
        n, total = seen.sizes[chosen].sum(), seen.units[chosen].sum(axis=0)
        if n < 2:
            return 0.0
        energy = seen.energy * (n / seen.sizes.sum())  # that of a half is not known
        means.append(contributions(total, energy) / (n * (n - 1)))
    one, other = means
    luck = (one - other)[largest(one)].sum() + (other - one)[largest(other)].sum()
    return float(luck / 2 / sqrt(2))


@measure(
    "outlier-share",
    reads=Units,
    isotropic=None,
    collapsed=None,
    unmoved_by={"scale"},
    cite="timkey2021",
    formula="sum of the 3 largest c_j over sum of all, c_j = (sum_i u_ij)^2 - sum_i u_ij^2, "
    "less the luck of being chosen, as seen between halves of the documents",
    misleads="Where the mean cosine is near zero it is a ratio of two small numbers and may "
    "exceed 1. Depends on the basis, as its question does.",
)
def outlier_share(seen: Units) -> float:
    """Share of the mean cosine owed to the three dimensions that contribute most."""
    parts = contributions(seen.total, seen.energy)
    whole = parts.sum()
    if abs(whole) <= 1e-9 * seen.count:
        raise UndefinedError(
            "outlier-share needs a mean cosine that is not zero, got zero",
            hint="there is no common direction to explain",
            slug="no-cosine",
        )
    pairs = seen.count * (seen.count - 1)
    return float((parts[largest(parts)].sum() - optimism(seen) * pairs) / whole)


@at_once(outlier_share)
def _without_each(seen: Units) -> Array:
    n = seen.sizes.sum() - seen.sizes  # (groups,)
    energy = seen.energy * (n / seen.sizes.sum())[:, None]  # (groups, d), as `without` has it
    parts = contributions(sum_of_others(seen.units), energy)
    whole = parts.sum(axis=1)
    odd = seen.keys % np.uint64(2) == 1
    means, counts, groups = zip(
        *(_half_without_each(seen, half, energy / n[:, None]) for half in (odd, ~odd)),
        strict=True,
    )
    one, other = means
    luck = _sum_of_largest(one, one - other) + _sum_of_largest(other, other - one)
    known = (np.minimum(*groups) >= LEAST_GROUPS) & (np.minimum(*counts) >= 2)
    luck = np.where(known, luck / 2 / sqrt(2), 0.0)
    found = (_sum_of_largest(parts, parts) - luck * (n * (n - 1))) / whole
    return np.where(np.abs(whole) > 1e-9 * n, found, np.nan)


def _half_without_each(seen: Units, half: Array, energy: Array) -> tuple[Array, Array, Array]:
    """Return mean contributions of half of the groups without each group, rows and groups.

    (groups, d), (groups,) and (groups,); `energy` is that of one row.
    """
    total = np.repeat(seen.units[half].sum(axis=0)[None], seen.groups, axis=0)
    total[half] = sum_of_others(seen.units[half])
    n = seen.sizes[half].sum() - np.where(half, seen.sizes, 0.0)
    means = contributions(total, energy * n[:, None]) / (n * (n - 1))[:, None]
    return means, n, half.sum() - half


def _sum_of_largest(parts: Array, summed: Array) -> Array:
    """Return the sum of some numbers over the dimensions that are largest in others, (k,)."""
    places = np.argsort(parts, axis=1, kind="stable")[:, -TOP:]
    return np.take_along_axis(summed, places, axis=1).sum(axis=1)
