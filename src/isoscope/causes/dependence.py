"""How much the likeness of rows depends on the frequency of tokens and on their position.

With w_c the share of the rows and m_c the mean unit vector of a cell:

    C = |sum of w_c m_c|^2     the partner of a row is drawn from all rows
    T = sum of w_c |m_c|^2     it is drawn from the row's own cell

A cause alone has (T - C) / T: zero if its cells all have the same mean, p if a share p of the
rows lies outside a cone that the others share, one if cells have nothing in common. Two causes
are parts of one whole, T over pairs of their bands; who comes first has what both explain,
so each has a first, a last and a Shapley value, the mean of the two.
"""

import numpy as np

from isoscope.causes.cloud import CloudSums
from isoscope.causes.pairs import (
    GroupSizes,
    Share,
    join_cells,
    mean_cosine,
    pair_products,
    row_pairs,
    totals,
    within_cells,
)
from isoscope.dataclass import dataclass
from isoscope.types import Array

LEAST_GROUPS = 3  # that a cell is seen in: without any of them a pair is left


@dataclass(frozen=True)
class Band:
    """A band of a cause: its part in the rows and in the mean cosine."""

    number: int  # as `band_name` counts them
    rows: float  # share of the rows
    cosine: float | None  # mean cosine within it; None where one group has all of it
    contribution: Share  # to the mean cosine; those of all bands of a cause add up to one


@dataclass(frozen=True)
class Dependence:
    """What depends on one cause, as parts of T over the cells of all causes."""

    alone: Share  # (T - C) / T of its own cells: nothing else is known
    first: Share  # it comes before the other cause
    last: Share  # it comes after the other
    shapley: Share  # the mean of the two
    bands: tuple[Band, ...]


@dataclass(frozen=True)
class Dependences:
    """What depends on each cause that is known, on all of them, and on none."""

    whole: Share  # T over the cells of all causes
    causes: dict[str, Dependence]
    both: Share  # (T - C) / T
    mean: Share  # C / T


def dependences(cloud: CloudSums, groups: GroupSizes) -> Dependences:
    """Return what depends on frequency and on position, of the rows that are not sinks."""
    least = min(LEAST_GROUPS, cloud.groups)
    common = mean_cosine(cloud.units.sum(axis=(1, 2)), cloud.rows.sum(axis=(1, 2)))
    known = {"frequency": cloud.frequencies_known, "position": cloud.positions_known}
    names = [name for name, there in known.items() if there]
    # T of one cause, by the cells of its bands
    single = {name: _by_bands(cloud, name, least) for name in names}
    whole = _by_pairs(cloud, least) if len(names) > 1 else single[names[0]]
    causes: dict[str, Dependence] = {}
    for name in names:
        first = single[name] - common
        others = [single[other] for other in names if other != name]
        last = whole - (others[0] if others else common)
        causes[name] = Dependence(
            alone=groups.share(first / single[name]),
            first=groups.share(first / whole),
            last=groups.share(last / whole),
            shapley=groups.share((first + last) / 2 / whole),
            bands=_bands(cloud, name, groups),
        )
    return Dependences(
        whole=groups.share(whole),
        causes=causes,
        both=groups.share((whole - common) / whole),
        mean=groups.share(common / whole),
    )


def _by_bands(cloud: CloudSums, cause: str, least: int) -> Array:
    """Return T over the bands of one cause, (1 + groups,)."""
    _, units, rows = cloud.bands(cause)
    return _over(units, rows, join_cells(rows, least))


def _by_pairs(cloud: CloudSums, least: int) -> Array:
    """Return T over pairs of bands, (1 + groups,).

    A pair that too few groups have is joined with a neighbouring position of the same
    frequency; a frequency that too few have, with a neighbouring frequency.
    """
    positions = cloud.rows.shape[2]
    cells: list[list[int]] = []
    for frequencies in join_cells(cloud.rows.sum(axis=2), least):
        rows = cloud.rows[:, frequencies].sum(axis=1)  # (groups, positions)
        for places in join_cells(rows, least):
            cells.append([f * positions + p for f in frequencies for p in places])
    flat = cloud.units.reshape(cloud.groups, -1, cloud.width)
    return _over(flat, cloud.rows.reshape(cloud.groups, -1), cells)


def _over(units: Array, rows: Array, cells: list[list[int]]) -> Array:
    """Return T over cells that are joined from smaller ones."""
    joined = [units[:, cell].sum(axis=1) for cell in cells]
    counts = [rows[:, cell].sum(axis=1) for cell in cells]
    return within_cells(np.stack(joined, axis=1), np.stack(counts, axis=1))


def _bands(cloud: CloudSums, cause: str, groups: GroupSizes) -> tuple[Band, ...]:
    """Return the bands of a cause that have rows.

    The contribution w_b m_b . m / C of a band is its part in the sum of cosines over pairs.
    """
    numbers, units, rows = cloud.bands(cause)
    every = units.sum(axis=1, keepdims=True)  # (groups, 1, d)
    products = pair_products(units, np.broadcast_to(every, units.shape))  # (1 + groups, bands)
    parts = products / products.sum(axis=1, keepdims=True)
    shares = totals(rows)[0] / rows.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = pair_products(units, units)[0] / row_pairs(rows, rows)[0]
    return tuple(
        Band(
            number=number,
            rows=float(shares[band]),
            cosine=float(cosines[band]) if np.isfinite(cosines[band]) else None,
            contribution=groups.share(parts[:, band]),
        )
        for band, number in enumerate(numbers)
        if shares[band] > 0
    )
