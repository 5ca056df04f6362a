"""Gradients at a site: their scatter by share of documents, and energy along fixed directions.

No gradient is kept. Energy shares, and IsoScore* with a subspace removed, are functions of the
scatter and the mean, whichever subspace is asked for later.
"""

from collections.abc import Mapping
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import ByGroup, Cellwise, pairwise_weights
from isoscope.accumulate.heads import SHARES, pack, unpack
from isoscope.accumulate.row_bands import FREQUENCIES
from isoscope.dataclass import dataclass
from isoscope.types import Array

HALVES = ("early", "late")  # of the documents, in the order in which they are run
BANDS = len(FREQUENCIES)
PARTS = len(HALVES) * BANDS  # rows of a cell by half and frequency band
ROWS, ENERGY = 0, 1  # the first columns of sums; those of directions follow
PIECES = len(HALVES) + BANDS  # of which scatters are kept apart: halves, then bands
PIECE_SHARES = PIECES * SHARES
_LARGEST = 1e38  # of what is added to sums in float32


@dataclass(frozen=True, kw_only=True)
class GradientsSummary(ByGroup):
    """Energies of every group by half and band, and scatters of eight shares."""

    arrays = ("sums",)
    basis: Array  # (d, k) orthonormal directions
    seed: int  # of random controls
    sums: Array  # (groups, halves, bands, 2 + k): rows, |g|^2, and squares along directions
    counted: bool  # whether the frequency of every token is known
    share_rows: Array  # (SHARES,)
    share_mean: Array  # (SHARES, d)
    scatter: Array  # (SHARES, d, d) about the mean of the share, float64

    @property
    def rank(self) -> int:
        """How many directions there are."""
        return self.basis.shape[1]

    @property
    def halves_seen(self) -> tuple[int, ...]:
        """The halves that have rows."""
        return tuple(np.flatnonzero(self.sums[..., ROWS].sum(axis=(0, 2))).tolist())

    @property
    def bands_seen(self) -> tuple[int, ...]:
        """The frequency bands that have rows; none where frequencies are unknown."""
        rows = self.sums[..., ROWS].sum(axis=(0, 1))
        return tuple(np.flatnonzero(rows).tolist()) if self.counted else ()


@dataclass(frozen=True)
class ShareSums:
    """Rows, mean, and scatter about the mean of each share of the documents."""

    rows: Array  # (SHARES,)
    mean: Array  # (SHARES, d)
    scatter: Array  # (SHARES, d, d)

    @classmethod
    def about_zero(cls, rows: Array, total: Array, products: Array) -> "ShareSums":
        """Return shares of which sums and sums of products about zero are known."""
        mean = total / np.maximum(rows, 1.0)[:, None]
        about = rows[:, None, None] * mean[:, :, None] * mean[:, None, :]
        return cls(rows, mean, products - about)


class ByShare:
    """Rows, mean and scatter of several shares of the rows, pooled share by share.

    Scatters are kept as half matrices, in the precision of the rows.
    """

    width: int

    def _begin_shares(self, shares: int, width: int) -> None:
        self.share_rows = np.zeros(shares)
        self.share_mean = np.zeros((shares, width))
        self.scatter = np.zeros((shares, width * (width + 1) // 2), dtype=np.float32)

    def _add_rows(self, rows: Array, share: Array) -> None:
        """Add rows (n, d), each to its share (n,)."""
        shares, single = len(self.share_rows), rows.dtype == np.float32
        rows = rows.astype(np.float64)
        count, mean = np.zeros(shares), np.zeros((shares, self.width))
        products = np.zeros((shares, self.width, self.width))
        for number in range(shares):
            here = rows[share == number]
            if len(here):
                count[number], mean[number] = len(here), here.mean(axis=0)
                off = here - mean[number]
                products[number] = off.T @ off
        self._add_shares(ShareSums(count, mean, products), single=single)

    def _add_shares(self, new: ShareSums, *, single: bool) -> None:
        """Pool scatters about means, share by share."""
        there = new.rows > 0
        share, weight = np.zeros(len(there)), np.zeros(len(there))
        share[there], weight[there] = pairwise_weights(self.share_rows[there], new.rows[there])
        step = np.where(there[:, None], new.mean - self.share_mean, 0.0)  # (shares, d)
        gap = weight[:, None, None] * step[:, :, None] * step[:, None, :]
        added = pack(new.scatter + gap, np.float64)
        fits = single and np.abs(added).max(initial=0.0) < _LARGEST
        if not fits and self.scatter.dtype != np.float64:
            self.scatter = self.scatter.astype(np.float64)
        self.scatter += added
        self.share_mean = self.share_mean + step * share[:, None]
        self.share_rows = self.share_rows + new.rows

    def _absorb_shares(self, other: "ByShare") -> None:
        self._add_shares(
            ShareSums(other.share_rows, other.share_mean, unpack(other.scatter, self.width)),
            single=other.scatter.dtype == np.float32,
        )


class Gradients(ByShare, Cellwise[GradientsSummary]):
    """Sums of gradients: by cell their energy along directions, by share their scatter.

    Scatters are kept as half matrices in the precision of the rows: 16 d^2 bytes of float32.
    Energies along different directions do not add up.
    """

    settings = ("basis", "seed")
    shapes = {"sums": ("parts_of_cell", "columns")}  # noqa: RUF012
    saved = (*Cellwise.saved, "basis", "seed", "counted", "share_rows", "share_mean", "scatter")
    totals = (*Cellwise.totals, "counted")
    parts_of_cell = PARTS
    counted: bool = True

    def __init__(self, width: int, basis: Array | None = None, seed: int = 0) -> None:
        self.seed = seed  # of random controls, which are drawn when it is read
        self.basis = np.eye(width, 1) if basis is None else np.asarray(basis, dtype=np.float64)
        super().__init__(width)
        self._begin_shares(SHARES, width)

    @property
    def columns(self) -> int:
        """Numbers per part of a cell: rows, energy, and energy along each direction."""
        return 2 + self.basis.shape[1]

    def _add(self, block: Block) -> None:
        cells = block.cells
        rows = np.asarray(block.rows[np.arange(len(block))])[cells.order]
        cell = np.repeat(np.arange(len(cells.keys)), np.diff(cells.starts))
        bands = np.zeros(len(rows), dtype=np.int64)
        if block.frequency is not None:
            bands = np.asarray(block.frequency)[cells.order].astype(np.int64)
        sums = np.zeros((len(cells.keys), PARTS, self.columns))
        np.add.at(sums, (cell, bands), self.row_sums(rows.astype(np.float64)))
        self._add_rows(rows, (cells.keys % np.uint64(SHARES)).astype(np.int64)[cell])
        self._add_block(block, {"sums": sums})
        self.counted &= block.frequency is not None

    def row_sums(self, rows: Array) -> Array:
        """Return one, the energy, and the energy along each direction, (n, 2 + k)."""
        along = np.square(rows @ self.basis)
        return np.concatenate(
            [np.ones((len(rows), 1)), np.vecdot(rows, rows)[:, None], along], axis=1
        )

    def add_sums(
        self,
        keys: Array,
        folded: bool,
        sums: Array,
        shares: ShareSums,
        *,
        documents: int,
        counted: bool,
        single: bool = False,
    ) -> None:
        """Take in sums of cells (cells, PARTS, 2 + k) and shares that were made elsewhere."""
        there = sums[:, :, ROWS].sum(axis=1) > 0
        if not there.any():
            return
        self._add_shares(shares, single=single)
        self._take_in(keys[there], folded, {"sums": sums[there]})
        self.counted &= counted
        self.documents += documents
        self.count += round(float(sums[there][:, :, ROWS].sum()))

    def _absorb(self, other: Self) -> None:
        super()._absorb(other)
        self._absorb_shares(other)

    def _restore(self, state: Mapping[str, Array]) -> None:
        super()._restore(state)
        self.basis = np.array(state["basis"], dtype=np.float64)

    def finalize(self) -> GradientsSummary:
        """Return the sums, matrices whole again."""
        self._enough(self.count)
        sums = self.parts["sums"]
        return GradientsSummary(
            keys=self.keys.copy(),
            sizes=sums[:, :, ROWS].sum(axis=1),
            documents=self.documents,
            basis=self.basis.copy(),
            seed=self.seed,
            sums=sums.reshape(len(sums), len(HALVES), BANDS, self.columns).copy(),
            counted=self.counted,
            share_rows=self.share_rows.copy(),
            share_mean=self.share_mean.copy(),
            scatter=unpack(self.scatter, self.width),
        )


class ShuffledGradients(Gradients):
    """Gradients of the shuffled control: what they would be without the tokens' own targets."""


@dataclass(frozen=True)
class GradientPiecesSummary:
    """Scatters of both halves and of every frequency band, of eight shares each."""

    documents: int
    share_rows: Array  # (PIECES, SHARES)
    share_mean: Array  # (PIECES, SHARES, d)
    scatter: Array  # (PIECES, SHARES, d, d) about the mean of the share, float64


class GradientPieces(ByShare, Accumulator[GradientPiecesSummary]):
    """Scatters of gradients by half, and once more by frequency band of their token.

    Of eight shares of the documents each, 112 d^2 bytes of float32 in all: for a few sites
    only. Without frequencies all rows are in the first band.
    """

    saved = ("documents", "share_rows", "share_mean", "scatter")
    totals = ("documents",)
    documents: int = 0

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self._begin_shares(PIECE_SHARES, width)

    def _add(self, block: Block) -> None:
        cells = block.cells
        rows = np.asarray(block.rows[np.arange(len(block))])[cells.order]
        share = np.repeat(cells.keys % np.uint64(SHARES), np.diff(cells.starts))
        share = share.astype(np.int64)
        bands = np.zeros(len(rows), dtype=np.int64)
        if block.frequency is not None:
            bands = np.asarray(block.frequency)[cells.order].astype(np.int64)
        self._add_rows(rows, share)  # all of the first half
        self._add_rows(rows, (len(HALVES) + bands) * SHARES + share)
        self.documents += len(block.members.runs) - 1

    def add_sums(self, shares: ShareSums, *, documents: int, single: bool = False) -> None:
        """Take in sums of shares that were made elsewhere."""
        self._add_shares(shares, single=single)
        self.documents += documents
        self.count += round(float(shares.rows[: len(HALVES) * SHARES].sum()))

    def _absorb(self, other: Self) -> None:
        self._absorb_shares(other)

    def finalize(self) -> GradientPiecesSummary:
        """Return the sums, matrices whole again."""
        self._enough(self.count)
        shape = PIECES, SHARES
        return GradientPiecesSummary(
            self.documents,
            self.share_rows.reshape(shape).copy(),
            self.share_mean.reshape(*shape, -1).copy(),
            unpack(self.scatter, self.width).reshape(*shape, self.width, self.width),
        )
