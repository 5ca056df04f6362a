"""Occurrences of token types: how much of each type's set one direction explains."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from isoscope.accumulate import Accumulator, Vocabulary, VocabularySummary
from isoscope.accumulate.hashing import GROUPS
from isoscope.measures.view.summaries import Summaries
from isoscope.types import Array

LEAST = 5  # occurrences of a type, below which one direction explains most of any set


@dataclass(frozen=True)
class Occurrences:
    """For each type with enough occurrences, the share of its first singular value."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Vocabulary,)
    over_types: ClassVar[bool] = True
    shares: Array  # (types,)
    random: Array  # (types,) the same of as many occurrences of any type
    rows: Array  # (types,) occurrences looked at
    cells: Array  # (types,) group of each type
    keys: Array  # (groups,) which groups of types they are
    known: int  # types of which occurrences were kept
    vocabulary: int

    @classmethod
    def of(cls, summaries: Summaries) -> "Occurrences":
        """Return the shares of every type with enough occurrences."""
        kept: VocabularySummary = summaries.of(Vocabulary)
        rows = scaled(kept.rows)
        sizes = np.bincount(kept.owners, minlength=len(kept.tokens))
        starts = np.r_[0, np.cumsum(sizes)]
        found: list[tuple[float, float, int, int]] = []
        for kind in np.flatnonzero(sizes >= LEAST):
            size, mark = int(sizes[kind]), int(kept.hashes[kind])
            share = first_share(rows[starts[kind] : starts[kind + 1]])
            rng = np.random.Generator(np.random.PCG64(mark))
            other = first_share(rows[np.sort(rng.choice(len(rows), size, replace=False))])
            if share is not None and other is not None:
                found.append((share, other, size, mark % GROUPS))
        table = np.array(found, dtype=np.float64).reshape(-1, 4)
        keys, cells = np.unique(table[:, 3], return_inverse=True)
        return cls(
            shares=table[:, 0],
            random=table[:, 1],
            rows=table[:, 2],
            cells=cells,
            keys=keys.astype(np.uint64),
            known=int((sizes > 0).sum()),
            vocabulary=kept.vocabulary,
        )

    @property
    def count(self) -> int:
        """How many occurrences were looked at."""
        return int(self.rows.sum())

    @property
    def documents(self) -> int:
        """How many types count: they are what is drawn here."""
        return len(self.shares)

    @property
    def groups(self) -> int:
        """How many groups of types there are."""
        return int(self.cells.max(initial=-1)) + 1

    @property
    def sizes(self) -> Array:
        """Types in each group."""
        return np.bincount(self.cells).astype(np.float64)

    def without(self, group: int) -> "Occurrences":
        """Return the view as if the types of a group had never been seen."""
        keep = self.cells != group
        names = ("shares", "random", "rows", "cells")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


def scaled(rows: Array) -> Array:
    """Return rows in float64, divided by a power of two near the largest number."""
    wide = rows.astype(np.float64)
    return np.ldexp(wide, -int(np.frexp(np.abs(wide).max(initial=0.0))[1]))


def first_share(rows: Array) -> float | None:
    """Return s1^2 over the sum of s^2, s the singular values of rows; None for zeros."""
    gram = rows @ rows.T if len(rows) <= rows.shape[1] else rows.T @ rows
    whole = float(np.trace(gram))
    return float(np.linalg.eigvalsh(gram)[-1]) / whole if whole > 0 else None
