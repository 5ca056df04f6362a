"""Gradients: their energy inside of a proxy, beside controls, and scatters without it."""

from dataclasses import field, fields
from functools import cache
from typing import Self

import numpy as np

from isoscope.accumulate import (
    GradientPieces,
    Gradients,
    GradientsSummary,
    ShuffledGradients,
)
from isoscope.accumulate.gradients import ENERGY, HALVES, ROWS
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError
from isoscope.hashing import sorted_distinct
from isoscope.measures.subspaces import (
    Cloud,
    Draws,
    check_complement,
    draw_complement,
    draw_random,
    no_energy,
)
from isoscope.measures.view.summaries import GroupView, Summaries
from isoscope.types import Array

FEW = 99  # drawn controls of a value without one of the groups, which only intervals need


@dataclass(frozen=True, kw_only=True)
class TangentEnergies(GroupView):
    """The energy of each group of documents, and what of it lies in the proxy."""

    needs = (Gradients,)
    arrays = ("inside", "energy")
    inside: Array  # (groups,) sum of |Q'g|^2
    energy: Array  # (groups,) sum of |g|^2
    rank: int
    width: int

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of all rows."""
        return cls.of_rows(summaries.of(Gradients))

    @classmethod
    def of_rows(
        cls,
        seen: GradientsSummary,
        half: int | None = None,
        band: int | None = None,
        direction: int | None = None,
    ) -> Self:
        """Return the view of a half, of a frequency band, or of one direction alone."""
        rows, energy, inside = _energies(seen, half, band, direction)
        there = rows > 0
        return cls(
            keys=seen.keys[there],
            sizes=rows[there],
            documents=seen.documents,
            inside=inside[there],
            energy=energy[there],
            rank=seen.basis.shape[1],
            width=len(seen.basis),
        )

    @property
    def share(self) -> float:
        """The share of the energy that lies in the proxy."""
        return _divide(self.inside, self.energy)


@cache
def part_of(
    half: int | None = None, band: int | None = None, direction: int | None = None
) -> type[TangentEnergies]:
    """Return the kind of view of a half, of a frequency band, or of one direction alone."""

    class PartEnergies(TangentEnergies):
        """The energy of some of the rows, or in one direction."""

        @classmethod
        def of(cls, summaries: Summaries) -> Self:
            return cls.of_rows(summaries.of(Gradients), half, band, direction)

    return PartEnergies


class ShuffledEnergies(TangentEnergies):
    """The energy of the shuffled control alone."""

    needs = (ShuffledGradients,)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of all rows of the control."""
        return cls.of_rows(summaries.of(ShuffledGradients))


class AgainstRandom(TangentEnergies):
    """Beside uniformly random subspaces, which hold k / d of the energy in the mean."""

    @property
    def expected(self) -> float:
        """The mean share over all such subspaces."""
        return self.rank / self.width


class AgainstComplement(TangentEnergies):
    """Beside random subspaces of the complement, as published."""

    @property
    def expected(self) -> float:
        """The mean share over all such subspaces: what is left, k / (d - k) of it."""
        check_complement(self.width, self.rank)
        return (1 - self.share) * self.rank / (self.width - self.rank)


@dataclass(frozen=True, kw_only=True)
class AgainstShuffled(TangentEnergies):
    """Beside gradients of the shuffled control, of the same groups of documents."""

    needs = (Gradients, ShuffledGradients)
    arrays = ("inside", "energy", "shuffled_inside", "shuffled_energy")
    shuffled_inside: Array  # (groups,)
    shuffled_energy: Array  # (groups,)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of both, whichever groups have either."""
        real, control = summaries.of(Gradients), summaries.of(ShuffledGradients)
        groups = sorted_distinct(real.keys, control.keys)
        places = np.searchsorted(groups, real.keys), np.searchsorted(groups, control.keys)
        parts = np.zeros((5, len(groups)))
        parts[:3, places[0]] = _energies(real)
        parts[3:, places[1]] = _energies(control)[1:]
        return cls(
            keys=groups,
            sizes=parts[0],
            documents=real.documents,
            energy=parts[1],
            inside=parts[2],
            shuffled_energy=parts[3],
            shuffled_inside=parts[4],
            rank=real.basis.shape[1],
            width=len(real.basis),
        )

    @property
    def expected(self) -> float:
        """The share of the control's energy that lies in the proxy."""
        return _divide(self.shuffled_inside, self.shuffled_energy)


Controlled = AgainstRandom | AgainstComplement | AgainstShuffled


@dataclass(frozen=True, kw_only=True)
class TangentScatters(GroupView):
    """Rows, mean and scatter of gradients of eight shares of the documents, and the proxy."""

    needs = (Gradients,)
    arrays = ("mean", "scatter")
    mean: Array  # (shares, d)
    scatter: Array  # (shares, d, d) about the mean of the share
    basis: Array  # (d, k)
    seed: int
    partial: bool = False  # whether a group is left out, for an interval
    found: dict[tuple[int, float], Draws] = field(
        default_factory=dict[tuple[int, float], Draws]
    )

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of all shares that have rows."""
        seen = summaries.of(Gradients)
        there = seen.share_rows > 0
        return cls(
            keys=np.flatnonzero(there).astype(np.uint64),
            sizes=seen.share_rows[there],
            documents=seen.documents,
            mean=seen.share_mean[there],
            scatter=seen.scatter[there],
            basis=seen.basis,
            seed=seen.seed,
        )

    def without(self, group: int) -> Self:
        """Return the view as if a share had never been seen."""
        left = super().without(group)
        return left.changed(partial=True, found={})

    @property
    def cloud(self) -> Cloud:
        """All gradients together."""
        return _pool(self.sizes, self.mean, self.scatter)

    def rise(self, zeta: float) -> float:
        """Return by how much IsoScore* rises without the proxy."""
        return self.cloud.rise(self.basis, zeta)

    def expected(self, zeta: float, controls: int) -> float:
        """Return the rise of the control; nothing is taken off where there is none."""
        return 0.0

    def draws(self, zeta: float, controls: int) -> Draws:
        """Return what drawn controls hold and leave, computed once."""
        number = min(controls, FEW) if self.partial else controls
        if (number, zeta) not in self.found:
            self.found[number, zeta] = self.draw(zeta, number)
        return self.found[number, zeta]

    def draw(self, zeta: float, number: int) -> Draws:
        """Draw uniformly random subspaces."""
        return draw_random(self.cloud, self.basis.shape[1], number, zeta, self.seed)


@cache
def scatters_of(half: int | None = None, band: int | None = None) -> type[TangentScatters]:
    """Return the kind of view of the scatters of a half, or of a frequency band."""
    assert (half is None) != (band is None)
    piece = len(HALVES) + band if band is not None else half

    class PieceScatters(TangentScatters):
        """The scatters of some of the rows."""

        needs = (Gradients, GradientPieces)

        @classmethod
        def of(cls, summaries: Summaries) -> Self:
            whole, seen = summaries.of(Gradients), summaries.of(GradientPieces)
            rows = seen.share_rows[piece]
            there = rows > 0
            return cls(
                keys=np.flatnonzero(there).astype(np.uint64),
                sizes=rows[there],
                documents=seen.documents,
                mean=seen.share_mean[piece][there],
                scatter=seen.scatter[piece][there],
                basis=whole.basis,
                seed=whole.seed,
            )

    return PieceScatters


class RandomScatters(TangentScatters):
    """Beside uniformly random subspaces."""

    def expected(self, zeta: float, controls: int) -> float:
        """Return the mean rise without a random subspace."""
        return float(self.draws(zeta, controls).rises.mean())


class ComplementScatters(RandomScatters):
    """Beside random subspaces of the complement, as published."""

    def draw(self, zeta: float, number: int) -> Draws:
        """Draw subspaces of the complement."""
        return draw_complement(self.cloud, self.basis, number, zeta, self.seed)


@dataclass(frozen=True, kw_only=True)
class ShuffledScatters(TangentScatters):
    """Beside gradients of the shuffled control, of the same shares."""

    needs = (Gradients, ShuffledGradients)
    arrays = ("mean", "scatter", "shuffled_rows", "shuffled_mean", "shuffled_scatter")
    shuffled_rows: Array  # (shares,)
    shuffled_mean: Array  # (shares, d)
    shuffled_scatter: Array  # (shares, d, d)

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the view of both."""
        real, control = summaries.view(TangentScatters), summaries.of(ShuffledGradients)
        there = real.keys.astype(np.int64)
        return cls(
            **{each.name: getattr(real, each.name) for each in fields(real)},
            shuffled_rows=control.share_rows[there],
            shuffled_mean=control.share_mean[there],
            shuffled_scatter=control.scatter[there],
        )

    def expected(self, zeta: float, controls: int) -> float:
        """Return the rise that the control has without the proxy."""
        if self.shuffled_rows.sum() < 2:
            raise TooFewRowsError(
                "a shuffled control needs at least 2 rows, got fewer",
                hint="give more documents: one micro-batch in eight has the control",
                slug="too-few-rows",
            )
        control = _pool(self.shuffled_rows, self.shuffled_mean, self.shuffled_scatter)
        return control.rise(self.basis, zeta)


def _energies(
    seen: GradientsSummary,
    half: int | None = None,
    band: int | None = None,
    direction: int | None = None,
) -> tuple[Array, Array, Array]:
    """Return rows, energy and energy in the proxy of each group."""
    sums = seen.sums if half is None else seen.sums[:, half : half + 1]
    sums = sums if band is None else sums[:, :, band : band + 1]
    total = sums.sum(axis=(1, 2))  # (groups, 2 + k)
    along = total[:, ENERGY + 1 :]
    inside = along.sum(axis=1) if direction is None else along[:, direction]
    return total[:, ROWS], total[:, ENERGY], inside


def _divide(inside: Array, energy: Array) -> float:
    whole = float(energy.sum())
    if whole <= 0:
        raise no_energy()
    return float(inside.sum()) / whole


def _pool(rows: Array, means: Array, scatters: Array) -> Cloud:
    """Return the cloud of several parts."""
    total = float(rows.sum())
    mean = rows @ means / total
    off = np.sqrt(rows)[:, None] * (means - mean)
    return Cloud(total, mean, scatters.sum(axis=0) + off.T @ off)
