"""Where rows point: the sum of unit vectors of each document group, about any centre."""

from collections.abc import Mapping
from typing import Self, TypeVar

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import ByGroup, Cellwise
from isoscope.dataclass import dataclass
from isoscope.types import Array

N = TypeVar("N", float, Array)
NOTHING = 1e-9  # mean cosine below which shares of it mean nothing


def cosine_over_pairs(squared: N, count: N) -> N:
    """Return the mean cosine of all pairs of different rows, from their unit vectors' sum.

    The sum of all dot products of n unit vectors is the squared length of their sum, n of
    them of a row with itself: (|sum u|^2 - n) / (n (n - 1)). One row has no pairs: NumPy's
    numbers then give NaN or infinity, which intervals take as undefined, Python's an error.

    >>> cosine_over_pairs(4.0, 2)
    1.0
    """
    return (squared - count) / (count * (count - 1))


def contributions(total: Array, energy: Array) -> Array:
    """Return the part of each dimension in the sum of cosines over all pairs, (d,).

    `total` is the sum of unit vectors and `energy` the sum of their squared components.
    """
    return total**2 - energy


@dataclass(frozen=True, kw_only=True)
class DirectionsSummary(ByGroup):
    """Sums over the unit vectors of every group; rows of length zero have none.

    `sizes` are the rows with a direction.
    """

    arrays = ("units", "own", "pairs")
    units: Array  # (groups, d) sum of unit vectors
    energy: Array  # (d,) sum of their squared components
    own: Array  # (groups,) sum over documents of |sum of unit vectors|^2
    pairs: Array  # (groups,) sum over documents of rows squared

    @property
    def total(self) -> Array:
        """Sum of all unit vectors."""
        return self.units.sum(axis=0)

    @property
    def shares(self) -> Array:
        """Share of each dimension in the mean cosine; NaN where that is zero, else sum one."""
        parts = contributions(self.total, self.energy)
        whole, pairs = parts.sum(), self.count * max(self.count - 1, 1)
        return np.full_like(parts, np.nan) if abs(whole) <= NOTHING * pairs else parts / whole

    def without(self, group: int) -> Self:
        """Return the summary as if a group had never been seen."""
        keep = np.arange(self.groups) != group
        share = self.sizes[keep].sum() / self.sizes.sum()  # the energy of a group is not known
        return self.only(keep, energy=self.energy * share)


class Directions(Cellwise[DirectionsSummary]):
    """Sum of unit vectors, with what is needed to leave out pairs within a document."""

    least = 2
    shapes = {"nonzero": (), "units": ("width",), "own": (), "pairs": ()}  # noqa: RUF012
    saved = ("energy", *Cellwise.saved)
    totals = ("energy", *Cellwise.totals)

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.energy = np.zeros(width)

    def _add(self, block: Block) -> None:
        sums = block.sums
        self.energy = self.energy + sums.energy
        squares = block.document_squares
        own = {"own": squares.units, "pairs": squares.nonzero}
        parts = {"nonzero": sums.nonzero, "units": sums.units, **own}
        self._add_block(block, parts)

    def add_sums(
        self, keys: Array, folded: bool, parts: Mapping[str, Array], energy: Array
    ) -> None:
        """Take in sums that were made elsewhere; cells without a direction are ignored."""
        there = parts["nonzero"] > 0
        self.energy = self.energy + energy
        self._take_in(keys[there], folded, {name: each[there] for name, each in parts.items()})

    def finalize(self) -> DirectionsSummary:
        """Return the sums of every group that has a direction."""
        self._enough(int(self.parts["nonzero"].sum()))
        seen = self.parts["nonzero"] > 0
        nonzero, units, own, pairs = (self.parts[name][seen] for name in self.shapes)
        return DirectionsSummary(
            keys=self.keys[seen],
            sizes=nonzero,
            documents=self.documents,
            units=units,
            energy=self.energy.copy(),
            own=own,
            pairs=pairs,
        )


class CentredDirections(Directions):
    """Directions as seen from a centre: a second pass, once the mean is known.

    Two sums about different centres do not add up.
    """

    settings = ("centre",)
    saved = ("centre", *Directions.saved)

    def __init__(self, width: int, centre: Array | None = None) -> None:
        super().__init__(width)
        self.centre = (
            np.zeros(width) if centre is None else np.asarray(centre, dtype=np.float64)
        )

    def _add(self, block: Block) -> None:
        super()._add(block.about(self.centre))
