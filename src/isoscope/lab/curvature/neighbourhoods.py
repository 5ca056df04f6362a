"""Tangent and normal variance of token types, and how they go with frequency.

The tangent space of a type is not known: it is the leading principal directions of one half
of its occurrences, and the variance along them is that of the other half. So no direction is
chosen by the rows that are measured, and an isotropic cloud reads a tangent share of k / d.
Everything follows from the inner products of the occurrences of a type, (m, m).
"""

from collections.abc import Callable, Iterator
from dataclasses import fields

import numpy as np

from isoscope.accumulate import NeighbourhoodsSummary
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError
from isoscope.hashing import GROUPS
from isoscope.measures.interval import (
    LEAST_DOCUMENTS,
    Spread,
    influences,
    quantile,
)
from isoscope.types import Array

LEAST_TYPES = 3  # two points always lie on a line
BANDS = 2  # per decade of frequency
# Means over types, of all of them and of each band of frequency.
MEANS = ("tangent-variance", "normal-variance", "tangent-share", "centroid-distance")
# Over types: Pearson's correlation, as published, and exponents.
OVER_TYPES = (
    "frequency-distance-types",
    "frequency-tangent",
    "frequency-normal",
    "tangent-normal",
)


@dataclass(frozen=True)
class Neighbourhoods:
    """Inner products of the occurrences of types, and the frequency of each type."""

    tokens: Array  # (types,) ids
    shares: Array  # (types,) of all tokens
    grams: Array  # (types, m, m) of rows about the mean of their type
    groups: Array  # (types, m) group of documents of each row
    width: int
    rank: int

    @classmethod
    def of(cls, summary: NeighbourhoodsSummary, shares: Array, rank: int) -> "Neighbourhoods":
        """Return the types that have all occurrences; `shares` is by token id."""
        tokens, documents, rows = summary.complete()
        if len(tokens) < LEAST_TYPES:
            raise TooFewRowsError(
                f"a comparison of token types needs at least {LEAST_TYPES} types that occur in "
                f"{summary.kept} documents, got {len(tokens)}",
                hint="use a longer corpus, more --tokens or fewer --occurrences",
                slug="curvature-types",
            )
        if len(np.unique(shares[tokens])) == 1:
            raise TooFewRowsError(
                f"cannot compare {len(tokens)} token types: all have the same frequency",
                hint="use a longer corpus, or counts that differ with --frequencies",
                slug="curvature-types",
            )
        wide = rows.astype(np.float64)
        wide -= wide.mean(axis=1, keepdims=True)
        return cls(
            tokens,
            shares[tokens],
            wide @ wide.transpose(0, 2, 1),
            (documents % np.uint64(GROUPS)).astype(np.int64),
            rows.shape[2],
            rank,
        )

    def measure(self, without: int | None = None) -> "TypeValues":
        """Return the values of every type; without the documents of a group."""
        kept = np.ones(self.groups.shape) if without is None else self.groups != without
        place = np.arange(self.groups.shape[1])
        halves = [kept * (place % 2 == each) for each in (0, 1)]
        quarters = [kept * (place % 4 == each) for each in range(4)]
        whole = np.stack([self._variance(rows) for rows in halves])
        along = np.stack([self._along(halves[0], halves[1]), self._along(halves[1], halves[0])])
        distances = np.sqrt(np.maximum(np.einsum("tii->ti", self._about(kept, kept)), 0))
        count = kept.sum(axis=1)
        return TypeValues(
            shares=self.shares,
            tangent=along.mean(axis=0),
            normal=(whole - along).mean(axis=0),
            distances=distances.sum(axis=1) / np.sqrt(count * (count - 1)),
            quarters=np.stack([self._variance(rows) for rows in quarters]),
            quarter_tangents=np.stack(
                [self._along(each, halves[1 - n % 2]) for n, each in enumerate(quarters)]
            ),
        )

    def _variance(self, rows: Array) -> Array:
        """Return the variance of some rows, over all dimensions."""
        return np.einsum("tii->t", self._about(rows, rows)) / _freedom(rows)

    def _about(self, rows: Array, columns: Array) -> Array:
        """Return inner products of some rows with others, both about their means."""
        found = self.grams
        # G - (m / |m|) G, and zero outside of the chosen rows
        found = found - (rows[:, None, :] @ found) / rows.sum(1)[:, None, None]
        found = found - (found @ columns[:, :, None]) / columns.sum(1)[:, None, None]
        return found * rows[:, :, None] * columns[:, None, :]

    def _along(self, rows: Array, others: Array) -> Array:
        """Return the variance of some rows along the principal directions of others."""
        values, vectors = np.linalg.eigh(self._about(others, others))  # ascending
        values, vectors = values[:, -self.rank :], vectors[:, :, -self.rank :]
        seen = self._about(rows, others) @ vectors  # (types, m, rank)
        there = values > 1e-12 * np.maximum(values[:, -1:], 1e-300)
        energy = (seen**2).sum(axis=1)
        inside = np.where(there, energy / np.where(there, values, 1.0), 0.0).sum(axis=1)
        return inside / _freedom(rows)


@dataclass(frozen=True)
class TypeValues:
    """What is measured of every type."""

    shares: Array  # (types,)
    tangent: Array  # (types,) variance of each half along the directions of the other, mean
    normal: Array  # (types,) the rest of it
    distances: Array  # (types,) mean distance to the centroid of the type
    quarters: Array  # (4, types) variance of each quarter; 0 and 2 are one half
    quarter_tangents: Array  # (4, types) that along the directions of the other half

    def only(self, chosen: Array) -> "TypeValues":
        """Return the values of some types."""
        return TypeValues(
            **{each.name: getattr(self, each.name)[..., chosen] for each in fields(self)}
        )

    def means(self) -> dict[str, float]:
        """Return means over types."""
        values = (
            self.tangent,
            self.normal,
            self.tangent / (self.tangent + self.normal),
            self.distances,
        )
        return {name: float(each.mean()) for name, each in zip(MEANS, values, strict=True)}

    def over_types(self) -> dict[str, float]:
        """Return the correlation of frequency and distance, and exponents of variances."""
        frequency = np.log(self.shares)
        spread = _cov(frequency, frequency)
        values = (
            _cov(frequency, self.distances)
            / np.sqrt(spread * _cov(self.distances, self.distances)),
            _cov(frequency, np.log(self.tangent)) / spread,
            _cov(frequency, np.log(self.normal)) / spread,
            self._normal_over_tangent(),
        )
        return {name: float(each) for name, each in zip(OVER_TYPES, values, strict=True)}

    def _normal_over_tangent(self) -> float:
        """Return b of normal ~ tangent^b over types.

        It is 2 where the normal part is curvature, and 1 where neighbourhoods only differ in
        scale. A slope over tangent variances that are off by chance would be too flat: the
        variance of other occurrences takes their place (an instrument), those of the quarter
        that neither the directions nor the two variances have seen.
        """
        along = across = 0.0
        for number, (whole, tangent) in enumerate(
            zip(self.quarters, self.quarter_tangents, strict=True)
        ):
            other = self.quarters[(number + 2) % 4]
            there = (tangent > 0) & (whole > tangent) & (other > 0)
            seen = np.log(other[there])
            along += _cov(np.log(tangent[there]), seen)
            across += _cov(np.log((whole - tangent)[there]), seen)
        return across / along


@dataclass(frozen=True)
class Measured:
    """One value, with its interval over documents."""

    group: str
    measure: str
    value: float
    low: float | None
    high: float | None
    types: int


def measured_values(found: Neighbourhoods) -> Iterator[Measured]:
    """Yield what is read of a site: over all types, then of each band of frequency."""
    keys = np.unique(found.groups)
    whole = found.measure()
    parts = [found.measure(int(key)) for key in keys]
    sizes = np.array([(found.groups == key).sum() for key in keys], dtype=np.float64)

    def of(
        group: str, chosen: Array, read: Callable[[TypeValues], dict[str, float]]
    ) -> Iterator[Measured]:
        values = read(whole.only(chosen))
        others = [read(each.only(chosen)) for each in parts]
        for name, value in values.items():
            without = np.array([each[name] for each in others])
            low, high = _interval(value, without, sizes, keys)
            yield Measured(group, name, value, low, high, int(chosen.sum()))

    every = np.ones(len(found.shares), dtype=bool)
    yield from of("", every, TypeValues.over_types)
    yield from of("", every, TypeValues.means)
    numbers = band_numbers(found.shares)
    for number in np.unique(numbers):
        yield from of(band_name(int(number)), numbers == number, TypeValues.means)


def _interval(
    value: float, without: Array, sizes: Array, keys: Array
) -> tuple[float | None, float | None]:
    """Return the 95 % interval over documents; None where they are in few groups."""
    if len(keys) < LEAST_DOCUMENTS or not np.isfinite(without).all():
        return None, None
    spread = Spread(influences(value, without, sizes), keys)
    reach = quantile(spread.freedom) * spread.error
    return value - reach, value + reach


def band_numbers(shares: Array) -> Array:
    """Return the band of each share: half a decade each, 0 ending at a share of 1."""
    return np.floor(BANDS * np.log10(shares) + 1e-9).astype(np.int64)


def band_name(number: int) -> str:
    """Return what readings of a band are called.

    >>> band_name(-5), band_name(-4)
    ('frequency 3.2e-03 to 1.0e-02', 'frequency 1.0e-02 to 3.2e-02')
    """
    low, high = (10 ** (each / BANDS) for each in (number, number + 1))
    return f"frequency {low:.1e} to {high:.1e}"


def _freedom(chosen: Array) -> Array:
    return np.maximum(chosen.sum(axis=1) - 1, 1)


def _cov(x: Array, y: Array) -> float:
    return float(((x - x.mean()) * (y - y.mean())).mean())
