"""Token types: cosines within and between them, and what one direction explains of each."""

from functools import lru_cache
from typing import Self

import numpy as np

from isoscope.accumulate import Directions, Vocabulary
from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.dataclass import dataclass
from isoscope.errors import UndefinedError
from isoscope.hashing import GROUPS
from isoscope.measures.view.summaries import GroupView, Summaries, Units, no_tokens
from isoscope.types import Array

_TYPES = 16  # types of one number of occurrences that are looked at at once
LEAST = 5  # occurrences of a type, below which one direction explains most of any set


@dataclass(frozen=True, kw_only=True)
class TypeSums(GroupView):
    """Sums over the types of each group; n occurrences of a type have sum s and mean m.

    `sizes` and `documents` count types: they are what is drawn here.
    """

    needs = (Vocabulary, Directions)
    over_types = True
    arrays = (
        *("rows", "row_squares", "repeated", "repeated_rows", "within", "within_rows"),
        *("means", "mean_squares", "units", "unit_squares"),
    )
    rows: Array  # (groups,) of n
    repeated: Array  # (groups,) types with two occurrences or more
    repeated_rows: Array  # (groups,) their occurrences
    within: Array  # (groups,) mean cosine between occurrences, summed over those types
    within_rows: Array  # (groups,) the same times n
    means: Array  # (groups, d) of m
    mean_squares: Array  # (groups,) of |m|^2
    units: Array  # (groups, d) of s
    unit_squares: Array  # (groups,) of |s|^2
    row_squares: Array  # (groups,) of n^2
    every: Units  # unit vectors of all rows, of whatever type
    vocabulary: int  # types there are, kept or not

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the sums over types that occur with a direction."""
        kept = summaries.of(Vocabulary)
        seen = kept.nonzero > 0
        n, s = kept.nonzero[seen], kept.units[seen]  # (types,), (types, d)
        if not len(n):
            raise no_tokens()
        lengths = np.vecdot(s, s)
        twice = n >= 2
        within = np.zeros(len(n))
        within[twice] = cosine_over_pairs(lengths[twice], n[twice])
        keys, groups = np.unique(kept.hashes[seen] % np.uint64(GROUPS), return_inverse=True)
        sizes = np.bincount(groups).astype(np.float64)
        return cls(
            keys=keys,
            sizes=sizes,
            documents=len(n),
            rows=np.bincount(groups, n),
            repeated=np.bincount(groups, twice),
            repeated_rows=np.bincount(groups, n * twice),
            within=np.bincount(groups, within),
            within_rows=np.bincount(groups, within * n),
            means=_sum_by_group(s / n[:, None], groups),
            mean_squares=np.bincount(groups, lengths / n**2),
            units=_sum_by_group(s, groups),
            unit_squares=np.bincount(groups, lengths),
            row_squares=np.bincount(groups, n**2),
            every=summaries.view(Units),
            vocabulary=kept.vocabulary,
        )

    @property
    def count(self) -> int:
        """How many rows the kept types have."""
        return int(self.rows.sum())

    def without(self, group: int) -> Self:
        """Return the view as if the types of a group had never been seen."""
        left = super().without(group)
        return left.changed(documents=int(left.sizes.sum()))


@dataclass(frozen=True, kw_only=True)
class Occurrences(GroupView):
    """For each type with enough occurrences, the share of its first singular value.

    `sizes` and `documents` count types: they are what is drawn here.
    """

    needs = (Vocabulary,)
    over_types = True
    shares: Array  # (types,)
    random: Array  # (types,) the same of as many occurrences of any type
    rows: Array  # (types,) occurrences looked at
    cells: Array  # (types,) group of each type
    known: int  # types of which occurrences were kept
    vocabulary: int

    @classmethod
    def of(cls, summaries: Summaries) -> Self:
        """Return the shares of every type with enough occurrences."""
        kept = summaries.of(Vocabulary)
        rows = scale_down(kept.rows)
        sizes = np.bincount(kept.owners, minlength=len(kept.tokens))
        starts = np.cumsum(sizes) - sizes
        shares = np.full((2, len(sizes)), np.nan)  # of each type, and of as many of any type
        for size in range(LEAST, int(sizes.max(initial=0)) + 1):
            of_size = np.flatnonzero(sizes == size)
            for first in range(0, len(of_size), _TYPES):
                kinds = of_size[first : first + _TYPES]
                drawn = [draw_rows(int(kept.hashes[kind]), len(rows), size) for kind in kinds]
                own = starts[kinds][:, None] + np.arange(size)  # (kinds, size)
                for found, places in zip(shares, (own, np.array(drawn)), strict=True):
                    found[kinds] = first_shares(rows[places])
        there = np.flatnonzero(np.isfinite(shares).all(axis=0))
        keys, cells = np.unique(kept.hashes[there] % np.uint64(GROUPS), return_inverse=True)
        return cls(
            keys=keys,
            sizes=np.bincount(cells).astype(np.float64),
            documents=len(there),
            shares=shares[0, there],
            random=shares[1, there],
            rows=sizes[there].astype(np.float64),
            cells=cells,
            known=int((sizes > 0).sum()),
            vocabulary=kept.vocabulary,
        )

    @property
    def count(self) -> int:
        """How many occurrences were looked at."""
        return int(self.rows.sum())

    def without(self, group: int) -> Self:
        """Return the view as if the types of a group had never been seen."""
        keep = self.cells != group
        return self.changed(
            documents=int(keep.sum()),
            shares=self.shares[keep],
            random=self.random[keep],
            rows=self.rows[keep],
            cells=self.cells[keep],
        )


def _sum_by_group(rows: Array, groups: Array) -> Array:
    order = np.argsort(groups, kind="stable")  # every group has rows
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    return np.add.reduceat(rows[order], starts)


def scale_down(rows: Array) -> Array:
    """Return rows in float64, divided by a power of two near the largest number."""
    wide = rows.astype(np.float64)
    return np.ldexp(wide, -int(np.frexp(np.abs(wide).max(initial=0.0))[1]))


@lru_cache(maxsize=4096)  # all sites of a survey keep the same types
def draw_rows(mark: int, rows: int, size: int) -> Array:
    """Return which of so many rows stand for any type beside one that has this mark."""
    rng = np.random.Generator(np.random.PCG64(mark))
    return np.sort(rng.choice(rows, size, replace=False))


def first_shares(rows: Array) -> Array:
    """Return s1^2 over the sum of s^2 of each set of rows, (sets, n, d); NaN for zeros.

    s are singular values.
    """
    turned = rows.transpose(0, 2, 1)
    grams = rows @ turned if rows.shape[1] <= rows.shape[2] else turned @ rows
    whole = np.trace(grams, axis1=1, axis2=2)
    longest = np.linalg.eigvalsh(grams)[:, -1]
    return np.divide(longest, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def not_repeated(name: str, times: int, types: int) -> UndefinedError:
    """Return the error for a corpus in which no type comes often enough."""
    return UndefinedError(
        f"{name} needs a token type that occurs at least {times} times, "
        f"got none among {types} types",
        hint="give a longer corpus; the other measures do not need repeated tokens",
        slug="no-repeated-type",
    )
