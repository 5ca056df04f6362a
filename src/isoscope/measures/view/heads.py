"""Heads of attention: means of queries and keys, their directions, scatters and scores."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import ClassVar, Self

import numpy as np

from isoscope.accumulate import (
    EarlyKeys,
    EarlyQueries,
    HeadVectorsSummary,
    Keys,
    Kind,
    MeansSummary,
    Queries,
    QueryScores,
)
from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.accumulate.heads import STATISTICS
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.hashing import sorted_distinct
from isoscope.measures.view.spectrum import no_spread
from isoscope.measures.view.summaries import GroupView, Summaries
from isoscope.types import Array

POOLED = np.zeros(1, dtype=np.uint64)  # the key of several groups that are pooled


class PooledView(GroupView):
    """A view whose groups are only ever pooled, so that all but one of them are one group.

    There are hundreds of heads, and each is read without each of its groups: what the others
    come to is the whole less that group, for all groups at once.
    """

    @abstractmethod
    def all_but_each(self) -> Iterator[Self]:
        """Yield the view without each group, the others pooled into one."""

    def values_without(self, compute: Callable[[Self], float]) -> Array:
        """Return a measure without each group, (groups,)."""
        return np.array([compute(each) for each in self.all_but_each()])


def pool_others(rows: Array, means: Array) -> tuple[Array, Array]:
    """Return rows and mean of all groups but each, (groups,) and (groups, d).

    The mean is not finite where one group has all rows: then there is no interval.
    """
    left = rows.sum() - rows
    with np.errstate(divide="ignore", invalid="ignore"):
        return left, (rows @ means - rows[:, None] * means) / left[:, None]


@dataclass(frozen=True, kw_only=True)
class RowMeans(PooledView):
    """The mean query, or the mean key, of each group."""

    arrays = ("mean",)
    mean: Array  # (groups, d)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the rows that are needed."""
        seen = _means(summaries, cls.needs[0])
        return cls(keys=seen.keys, sizes=seen.sizes, documents=seen.documents, mean=seen.mean)

    @property
    def whole(self) -> Array:
        """The mean of all rows, (d,)."""
        return self.sizes @ self.mean / self.sizes.sum()

    def all_but_each(self) -> Iterator[Self]:
        """Yield the view without each group, the others pooled into one."""
        rows, mean = pool_others(self.sizes, self.mean)
        for each in range(self.groups):
            at = slice(each, each + 1)
            yield self.changed(keys=POOLED, sizes=rows[at], mean=mean[at])


class QueryMeans(RowMeans):
    """Mean queries."""

    needs = (Queries,)


class KeyMeans(RowMeans):
    """Mean keys."""

    needs = (Keys,)


class EarlyQueryMeans(RowMeans):
    """Mean queries before rotation."""

    needs = (EarlyQueries,)


class EarlyKeyMeans(RowMeans):
    """Mean keys before rotation."""

    needs = (EarlyKeys,)


@dataclass(frozen=True, kw_only=True)
class BothMeans(PooledView):
    """Mean queries and mean keys of the same groups; `sizes` are queries."""

    needs = (Queries, Keys, QueryScores)
    of_means: ClassVar[tuple[Kind, Kind]] = (Queries, Keys)
    arrays = ("queries", "key_rows", "key_means")
    queries: Array  # (groups, d)
    key_rows: Array  # (groups,)
    key_means: Array  # (groups, d)
    scale: float  # what dot products are multiplied with

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of queries and keys, whichever documents have both."""
        queries, keys = (_means(summaries, kind) for kind in cls.of_means)
        scores = summaries.of(QueryScores).sums.sum(axis=0)
        weight, scale = (scores[STATISTICS.index(name)] for name in ("weight", "scale"))
        groups = sorted_distinct(queries.keys, keys.keys)
        rows, mean = _spread_out(queries, groups)
        key_rows, key_means = _spread_out(keys, groups)
        return cls(
            keys=groups,
            sizes=rows,
            documents=queries.documents,
            queries=mean,
            key_rows=key_rows,
            key_means=key_means,
            scale=float(scale / weight) if weight > 0 else 0.0,
        )

    @property
    def means(self) -> tuple[Array, Array]:
        """The mean query and the mean key, (d,) each."""
        return (
            self.sizes @ self.queries / self.sizes.sum(),
            self.key_rows @ self.key_means / self.key_rows.sum(),
        )

    def all_but_each(self) -> Iterator[Self]:
        """Yield the view without each group, the others pooled into one."""
        rows, queries = pool_others(self.sizes, self.queries)
        key_rows, key_means = pool_others(self.key_rows, self.key_means)
        for each in range(self.groups):
            at = slice(each, each + 1)
            yield self.changed(
                keys=POOLED,
                sizes=rows[at],
                queries=queries[at],
                key_rows=key_rows[at],
                key_means=key_means[at],
            )


class EarlyMeans(BothMeans):
    """Mean queries and mean keys before rotation."""

    needs = (EarlyQueries, EarlyKeys, QueryScores)
    of_means = (EarlyQueries, EarlyKeys)


# What is read before rotation in place of what is read after it.
BEFORE_ROTATION: dict[type[GroupView], type[GroupView]] = {
    QueryMeans: EarlyQueryMeans,
    KeyMeans: EarlyKeyMeans,
    BothMeans: EarlyMeans,
}


@dataclass(frozen=True, kw_only=True)
class RowUnits(PooledView):
    """Sums of unit vectors of queries or of keys; `sizes` are rows with a direction."""

    arrays = ("units",)
    units: Array  # (groups, d)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the rows that are needed."""
        seen = _vectors(summaries, cls.needs[0])
        there = seen.nonzero > 0
        return cls(
            keys=seen.keys[there],
            sizes=seen.nonzero[there],
            documents=seen.documents,
            units=seen.units[there],
        )

    @property
    def mean_cosine(self) -> float:
        """The mean cosine of all pairs of different rows."""
        if self.count < 2:
            raise TooFewRowsError(
                f"a mean cosine needs at least 2 vectors with a direction, got {self.count}",
                hint="give more documents",
                slug="too-few-rows",
            )
        total = self.units.sum(axis=0)
        return float(cosine_over_pairs(np.float64(total @ total), self.count))

    def all_but_each(self) -> Iterator[Self]:
        """Yield the view without each group, the others pooled into one."""
        rows, units = self.sizes.sum() - self.sizes, self.units.sum(axis=0) - self.units
        for each in range(self.groups):
            at = slice(each, each + 1)
            yield self.changed(keys=POOLED, sizes=rows[at], units=units[at])


class QueryUnits(RowUnits):
    """Where queries point."""

    needs = (Queries,)


class KeyUnits(RowUnits):
    """Where keys point."""

    needs = (Keys,)


@dataclass(frozen=True, kw_only=True)
class RowScatters(PooledView):
    """Rows, mean and scatter of eight shares of the documents."""

    arrays = ("mean", "scatter")
    mean: Array  # (shares, d)
    scatter: Array  # (shares, d, d) about the mean of the share
    # First singular vectors by which shares there are: two measures read the same ones.
    found: dict[bytes, Array] = field(default_factory=dict[bytes, Array])

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the rows that are needed."""
        seen = _vectors(summaries, cls.needs[0])
        there = seen.share_rows > 0
        return cls(
            keys=np.flatnonzero(there).astype(np.uint64),
            sizes=seen.share_rows[there],
            documents=seen.documents,
            mean=seen.share_mean[there],
            scatter=seen.scatter[there],
        )

    @property
    def second_moments(self) -> Array:
        """The second moments of all rows about zero, (d, d)."""
        between = (self.mean.T * self.sizes) @ self.mean
        return (self.scatter.sum(axis=0) + between) / self.sizes.sum()

    @property
    def covariance(self) -> Array:
        """The scatter of all rows about their mean, over the number of rows, (d, d)."""
        off = self.mean - self.whole
        between = (off.T * self.sizes) @ off
        return (self.scatter.sum(axis=0) + between) / self.sizes.sum()

    @property
    def whole(self) -> Array:
        """The mean of all rows, (d,)."""
        return self.sizes @ self.mean / self.sizes.sum()

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.mean.shape[1]

    @property
    def participation(self) -> float:
        """tr(C)^2 / |C|^2 of the covariance: no eigenvalue is needed."""
        covariance, mean = self.covariance, self.whole
        length, trace = float(np.vdot(covariance, covariance)), float(np.trace(covariance))
        # what float32 leaves of rows that are all alike, beside their second moments
        if length <= (1e-7 * (trace + float(mean @ mean))) ** 2:
            raise no_spread()
        return trace**2 / length

    def all_but_each(self) -> Iterator[Self]:
        """Yield the view without each share, the others pooled into one.

        `keys` stay those of the others: they are what first singular vectors are found by.
        """
        rows, mean = pool_others(self.sizes, self.mean)
        total = self.scatter.sum(axis=0)  # (d, d)
        for each in range(self.groups):
            others, at = np.arange(self.groups) != each, slice(each, each + 1)
            off = self.mean[others] - mean[each]
            between = (off.T * self.sizes[others]) @ off
            yield self.changed(
                keys=self.keys[others],
                sizes=rows[at],
                mean=mean[at],
                scatter=(total - self.scatter[each] + between)[None],
            )

    @property
    def first_direction(self) -> Array:
        """The first right singular vector of the rows, on the side of their mean, (d,)."""
        shares = self.keys.tobytes()
        if shares not in self.found:
            first = np.linalg.eigh(self.second_moments)[1][:, -1]
            self.found[shares] = -first if first @ self.whole < 0 else first
        return self.found[shares]


class QueryScatters(RowScatters):
    """Second moments of queries."""

    needs = (Queries,)


class KeyScatters(RowScatters):
    """Second moments of keys."""

    needs = (Keys,)


@dataclass(frozen=True, kw_only=True)
class BothScatters(PooledView):
    """Second moments of queries, and mean keys of the same shares of documents."""

    needs = (Queries, Keys)
    arrays = ("mean", "scatter", "key_rows", "key_means")
    mean: Array  # (shares, d) of queries
    scatter: Array  # (shares, d, d) of queries
    key_rows: Array  # (shares,)
    key_means: Array  # (shares, d)
    found: dict[bytes, Array]  # first singular vectors of queries, by shares

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of both."""
        queries, keys = _vectors(summaries, Queries), _vectors(summaries, Keys)
        there = (queries.share_rows > 0) & (keys.share_rows > 0)
        return cls(
            keys=np.flatnonzero(there).astype(np.uint64),
            sizes=queries.share_rows[there],
            documents=queries.documents,
            mean=queries.share_mean[there],
            scatter=queries.scatter[there],
            key_rows=keys.share_rows[there],
            key_means=keys.share_mean[there],
            found=summaries.view(QueryScatters).found,
        )

    @property
    def queries(self) -> QueryScatters:
        """The queries alone."""
        return QueryScatters(
            keys=self.keys,
            sizes=self.sizes,
            documents=self.documents,
            mean=self.mean,
            scatter=self.scatter,
            found=self.found,
        )

    @property
    def mean_key(self) -> Array:
        """The mean of all keys, (d,)."""
        return self.key_rows @ self.key_means / self.key_rows.sum()

    def all_but_each(self) -> Iterator[Self]:
        """Yield the view without each share, the others pooled into one."""
        key_rows, key_means = pool_others(self.key_rows, self.key_means)
        for each, queries in enumerate(self.queries.all_but_each()):
            at = slice(each, each + 1)
            yield self.changed(
                keys=queries.keys,
                sizes=queries.sizes,
                mean=queries.mean,
                scatter=queries.scatter,
                key_rows=key_rows[at],
                key_means=key_means[at],
            )


@dataclass(frozen=True, kw_only=True)
class ScoreSums(PooledView):
    """Sums over the queries whose scores were looked at, each times what it stands for."""

    needs = (QueryScores,)
    arrays = ("sums",)
    sums: Array  # (groups, statistics)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of the scores."""
        seen = summaries.of(QueryScores)
        return cls(keys=seen.keys, sizes=seen.sizes, documents=seen.documents, sums=seen.sums)

    def all_but_each(self) -> Iterator[Self]:
        """Yield the view without each group, the others pooled into one."""
        rows, sums = self.sizes.sum() - self.sizes, self.sums.sum(axis=0) - self.sums
        for each in range(self.groups):
            at = slice(each, each + 1)
            yield self.changed(keys=POOLED, sizes=rows[at], sums=sums[at])

    def total(self, name: str) -> float:
        """Return the sum of a statistic over all queries."""
        return float(self.sums[:, STATISTICS.index(name)].sum())

    def mean(self, name: str, over: str = "weight") -> float:
        """Return a statistic averaged over queries: all, or those that see several keys."""
        weight = self.total(over)
        if weight <= 0:
            what = "sees a key" if over == "weight" else "sees at least two keys"
            raise TooFewRowsError(
                f"attention needs a query that {what}, got none",
                hint="give longer documents",
                slug="no-visible-keys",
            )
        return self.total(name) / weight


NOISE = 2.0  # times the squared error of a mean, below which its direction is mostly noise


def warn_of_noise(rows: Array, means: Array, what: str) -> list[str]:
    """Warn where the direction of a mean is mostly that of its error.

    `rows` and `means` are those of groups of documents, (groups,) and (groups, d).
    """
    if len(rows) < 2:
        return []
    whole = rows @ means / rows.sum()  # (d,)
    others = pool_others(rows, means)[1]
    error = (len(rows) - 1) / len(rows) * float(np.square(others - others.mean(axis=0)).sum())
    if float(whole @ whole) >= NOISE * error:
        return []
    return [f"the mean {what} is no longer than its error: too few documents for its direction"]


def no_mean(name: str) -> UndefinedError:
    """Return the error for queries or keys that cancel out."""
    return UndefinedError(
        f"{name} needs a mean that is not zero, got zero",
        hint="check the weights of this head; all its queries or keys cancel out",
        slug="only-zeros",
    )


def _means(summaries: Summaries, kind: Kind) -> MeansSummary | HeadVectorsSummary:
    found = summaries.of(kind)
    assert isinstance(found, MeansSummary | HeadVectorsSummary)
    return found


def _vectors(summaries: Summaries, kind: Kind) -> HeadVectorsSummary:
    found = summaries.of(kind)
    assert isinstance(found, HeadVectorsSummary)
    return found


def _spread_out(seen: MeansSummary | HeadVectorsSummary, groups: Array) -> tuple[Array, Array]:
    """Return rows and means by group, zero where there are none."""
    slots = np.searchsorted(groups, seen.keys)
    rows, mean = np.zeros(len(groups)), np.zeros((len(groups), seen.mean.shape[1]))
    rows[slots], mean[slots] = seen.sizes, seen.mean
    return rows, mean
