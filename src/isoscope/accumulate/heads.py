"""Heads of attention: sums of their queries and keys, and of what each query makes of them."""

from collections.abc import Mapping
from functools import cache
from typing import Self

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import ByGroup, Cellwise, pairwise_weights
from isoscope.accumulate.row_bands import POSITIONS, position_bands
from isoscope.dataclass import dataclass
from isoscope.types import Array

SHARES = 8  # groups of documents whose scatter is kept: 32 of them would take megabytes
# What is summed for each query, times its weight: the queries that it stands for.
STATISTICS = (
    "weight",  # 1
    "spread",  # standard deviation of the scores of visible keys
    "several",  # 1 where at least two keys are visible
    "entropy",  # over the logarithm of the number of visible keys; 0 with fewer than two
    "largest",  # probability
    "first",  # probability of the first token
    "sink",  # probability of all norm sinks together
    "scale",  # what dot products are multiplied with
)


@dataclass(frozen=True, kw_only=True)
class MeansSummary(ByGroup):
    """The mean of the rows of each group."""

    arrays = ("mean",)
    mean: Array  # (groups, d)


@dataclass(frozen=True, kw_only=True)
class HeadVectorsSummary(ByGroup):
    """Queries or keys of a head: means, unit vectors, and scatters of shares of them."""

    arrays = ("mean", "nonzero", "units")
    mean: Array  # (groups, d)
    nonzero: Array  # (groups,) rows that have a direction
    units: Array  # (groups, d) sum of unit vectors
    share_rows: Array  # (SHARES,)
    share_mean: Array  # (SHARES, d)
    scatter: Array  # (SHARES, d, d) about the mean of the share


@dataclass(frozen=True, kw_only=True)
class QueryScoresSummary(ByGroup):
    """Sums of statistics of queries; `sizes` are the queries that were looked at."""

    arrays = ("sums",)
    sums: Array  # (groups, statistics)
    bands: Array  # (position bands, statistics) over all groups
    blind: int  # queries that see no key


class HeadMeans(Cellwise[MeansSummary]):
    """The mean of the rows of each cell, and nothing else."""

    shapes = {"rows": (), "mean": ("width",)}  # noqa: RUF012

    def _add(self, block: Block) -> None:
        self._add_block(block, means_of(block))

    def add_sums(self, keys: Array, folded: bool, parts: Mapping[str, Array]) -> None:
        """Take in sums of cells that were made elsewhere; they are all documents there are."""
        _take_rows(self, keys, folded, parts)

    def _pool(self, slots: Array, parts: Mapping[str, Array]) -> None:
        self._pool_means(slots, "rows", parts)

    def finalize(self) -> MeansSummary:
        """Return the means."""
        self._enough(self.count)
        return MeansSummary(
            keys=self.keys.copy(),
            sizes=self.parts["rows"].copy(),
            documents=self.documents,
            mean=self.parts["mean"].copy(),
        )


class EarlyQueries(HeadMeans):
    """Queries before rotary positions."""


class EarlyKeys(HeadMeans):
    """Keys before rotary positions."""


class HeadVectors(Cellwise[HeadVectorsSummary]):
    """Queries or keys of a head: what their means, cosines and covariance are read off.

    Means and unit vectors are kept by cell. The scatter is kept for eight shares of the
    documents, half of each matrix. Scatter and unit vectors are in float32: a head of width 64
    takes 90 kB.
    """

    shapes = {"rows": (), "mean": ("width",), "nonzero": (), "units": ("width",)}  # noqa: RUF012
    dtypes = {"units": np.dtype(np.float32)}  # noqa: RUF012
    saved = (*Cellwise.saved, "share_rows", "share_mean", "scatter")

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.share_rows = np.zeros(SHARES)
        self.share_mean = np.zeros((SHARES, width))
        self.scatter = np.zeros((SHARES, width * (width + 1) // 2), dtype=np.float32)

    def _add(self, block: Block) -> None:
        cells, sums = block.cells, block.sums
        rows = np.asarray(block.rows[np.arange(len(block))], dtype=np.float64)[cells.order]
        share = np.repeat(cells.keys % np.uint64(SHARES), np.diff(cells.starts))
        count, mean, scatter = (
            np.zeros(SHARES),
            np.zeros((SHARES, self.width)),
            np.zeros((SHARES, self.width, self.width)),
        )
        for number in range(SHARES):
            here = rows[share == number]
            if len(here):
                count[number], mean[number] = len(here), here.mean(axis=0)
                off = here - mean[number]
                scatter[number] = off.T @ off
        self._add_shares(count, mean, pack(scatter))
        vectors = {"nonzero": sums.nonzero, "units": sums.units}
        self._add_block(block, means_of(block) | vectors)

    def add_sums(
        self,
        keys: Array,
        folded: bool,
        parts: Mapping[str, Array],
        shares: tuple[Array, Array, Array],
    ) -> None:
        """Take in sums of cells that were made elsewhere, and rows, mean, scatter of shares."""
        count, mean, scatter = shares
        self._add_shares(count, mean, pack(scatter))
        _take_rows(self, keys, folded, parts)

    def _add_shares(self, count: Array, mean: Array, scatter: Array) -> None:
        """Pool scatters about means, share by share."""
        there = count > 0
        share, weight = np.zeros(SHARES), np.zeros(SHARES)
        share[there], weight[there] = pairwise_weights(self.share_rows[there], count[there])
        step = mean - self.share_mean  # (SHARES, d)
        gap = weight[:, None, None] * step[:, :, None] * step[:, None, :]
        self.scatter += scatter
        self.scatter += pack(gap)
        self.share_mean += step * share[:, None]
        self.share_rows = self.share_rows + count

    def _pool(self, slots: Array, parts: Mapping[str, Array]) -> None:
        self._pool_means(slots, "rows", parts)
        for name in ("nonzero", "units"):
            self.parts[name][slots] += parts[name]

    def _absorb(self, other: Self) -> None:
        super()._absorb(other)
        self._add_shares(other.share_rows, other.share_mean, other.scatter)

    def finalize(self) -> HeadVectorsSummary:
        """Return the sums, matrices whole again."""
        self._enough(self.count)
        return HeadVectorsSummary(
            keys=self.keys.copy(),
            sizes=self.parts["rows"].copy(),
            documents=self.documents,
            mean=self.parts["mean"].copy(),
            nonzero=self.parts["nonzero"].copy(),
            units=self.parts["units"].astype(np.float64),
            share_rows=self.share_rows.copy(),
            share_mean=self.share_mean.copy(),
            scatter=unpack(self.scatter, self.width),
        )


class Queries(HeadVectors):
    """Queries of a head, as the dot product receives them."""


class Keys(HeadVectors):
    """Keys of a head, as the dot product receives them."""


class QueryScores(Cellwise[QueryScoresSummary]):
    """Sums over queries of what they make of their keys; a row holds `STATISTICS` of one."""

    shapes = {"rows": (), "sums": ("width",)}  # noqa: RUF012
    saved = (*Cellwise.saved, "bands", "blind")
    totals = (*Cellwise.totals, "bands", "blind")
    blind: int = 0

    def __init__(self, width: int = len(STATISTICS)) -> None:
        super().__init__(width)
        self.bands = np.zeros((POSITIONS, width))

    def _add(self, block: Block) -> None:
        cells, sums = block.cells, block.sums
        total = sums.total + sums.count[:, None] * block.origin
        self._add_block(block, {"rows": np.diff(cells.starts).astype(float), "sums": total})
        rows = np.asarray(block.rows[np.arange(len(block))], dtype=np.float64)
        bands = np.zeros_like(self.bands)
        np.add.at(bands, position_bands(block.positions), rows)
        self.bands = self.bands + bands

    def add_sums(
        self,
        keys: Array,
        folded: bool,
        parts: Mapping[str, Array],
        bands: Array,
        blind: int,
    ) -> None:
        """Take in sums that were made elsewhere."""
        self.bands = self.bands + bands
        self.blind += blind
        _take_rows(self, keys, folded, parts)

    def finalize(self) -> QueryScoresSummary:
        """Return the sums."""
        self._enough(self.count)
        return QueryScoresSummary(
            keys=self.keys.copy(),
            sizes=self.parts["rows"].copy(),
            documents=self.documents,
            sums=self.parts["sums"].copy(),
            bands=self.bands.copy(),
            blind=self.blind,
        )


def means_of(block: Block) -> dict[str, Array]:
    """Return rows and mean of each cell of a block."""
    sums = block.sums
    return {"rows": sums.count, "mean": block.origin + sums.total / sums.count[:, None]}


def _take_rows(
    part: HeadMeans | HeadVectors | QueryScores,
    keys: Array,
    folded: bool,
    parts: Mapping[str, Array],
) -> None:
    """Take in cells; `documents` of these parts says how many documents each one has."""
    there = parts["rows"] > 0
    documents = parts["documents"][there]
    chosen = {name: parts[name][there] for name in part.shapes}
    part._take_in(keys[there], folded, chosen)  # pyright: ignore[reportPrivateUsage]
    part.documents += int(documents.sum())
    part.count += int(chosen["rows"].sum())


@cache
def _lower(width: int) -> tuple[Array, Array]:
    """Return the rows and columns of the lower half of a matrix."""
    return np.tril_indices(width)


def pack(matrices: Array, dtype: type[np.floating] = np.float32) -> Array:
    """Return the lower halves of symmetric matrices, (n, d (d + 1) / 2)."""
    rows, columns = _lower(matrices.shape[-1])
    return matrices[..., rows, columns].astype(dtype)


def unpack(halves: Array, width: int) -> Array:
    """Return the whole matrices, (n, d, d), in float64."""
    rows, columns = _lower(width)
    whole = np.zeros((*halves.shape[:-1], width, width))
    whole[..., rows, columns] = halves
    whole[..., columns, rows] = halves
    return whole
