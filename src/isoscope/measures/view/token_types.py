"""Token types: the cosines within and between them, summed over groups of types."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from isoscope.accumulate import Accumulator, Directions, Vocabulary, VocabularySummary
from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.accumulate.hashing import GROUPS
from isoscope.errors import UndefinedError
from isoscope.measures.view.summaries import Summaries
from isoscope.measures.view.units import Units
from isoscope.types import Array


@dataclass(frozen=True)
class TypeSums:
    """Sums over the types of each group; n occurrences of a type have sum s and mean m."""

    needs: ClassVar[tuple[type[Accumulator[Any]], ...]] = (Vocabulary, Directions)
    over_types: ClassVar[bool] = True
    types: Array  # (groups,)
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
    keys: Array  # (groups,) which groups of types they are
    every: Units  # unit vectors of all rows, of whatever type
    vocabulary: int  # types there are, kept or not

    @classmethod
    def of(cls, summaries: Summaries) -> "TypeSums":
        """Return the sums over types that occur with a direction."""
        kept: VocabularySummary = summaries.of(Vocabulary)
        seen = kept.nonzero > 0
        n, s = kept.nonzero[seen], kept.units[seen]
        if not len(n):
            raise no_types()
        lengths = np.vecdot(s, s)
        twice = n >= 2
        within = np.zeros(len(n))
        within[twice] = cosine_over_pairs(lengths[twice], n[twice])
        dealt = kept.hashes[seen] % np.uint64(GROUPS)
        keys, groups = np.unique(dealt, return_inverse=True)
        means = s / n[:, None]
        return cls(
            types=np.bincount(groups).astype(np.float64),
            rows=np.bincount(groups, n),
            repeated=np.bincount(groups, twice),
            repeated_rows=np.bincount(groups, n * twice),
            within=np.bincount(groups, within),
            within_rows=np.bincount(groups, within * n),
            means=_summed(means, groups),
            mean_squares=np.bincount(groups, lengths / n**2),
            units=_summed(s, groups),
            unit_squares=np.bincount(groups, lengths),
            row_squares=np.bincount(groups, n**2),
            keys=keys,
            every=summaries.view(Units),
            vocabulary=kept.vocabulary,
        )

    @property
    def count(self) -> int:
        """How many rows the kept types have."""
        return int(self.rows.sum())

    @property
    def documents(self) -> int:
        """How many types there are: they are what is drawn here."""
        return int(self.types.sum())

    @property
    def groups(self) -> int:
        """How many groups of types there are."""
        return len(self.types)

    @property
    def sizes(self) -> Array:
        """Types in each group."""
        return self.types

    def without(self, group: int) -> "TypeSums":
        """Return the view as if the types of a group had never been seen."""
        keep = np.arange(self.groups) != group
        names = [f.name for f in fields(self) if f.name not in ("every", "vocabulary")]
        kept = {name: getattr(self, name)[keep] for name in names}
        return TypeSums(**kept, every=self.every, vocabulary=self.vocabulary)


def _summed(rows: Array, groups: Array) -> Array:
    total = np.zeros((int(groups.max()) + 1, rows.shape[1]))
    np.add.at(total, groups, rows)
    return total


def no_types() -> UndefinedError:
    """Return the error for rows of which none is of a token."""
    return UndefinedError(
        "a measure by token type needs rows with tokens, got none",
        hint="survey a model over text; vectors on disk have no tokens",
        slug="no-tokens",
    )


def not_repeated(name: str, times: int, types: int) -> UndefinedError:
    """Return the error for a corpus in which no type comes often enough."""
    return UndefinedError(
        f"{name} needs a token type that occurs at least {times} times, "
        f"got none among {types} types",
        hint="give a longer corpus; the other measures do not need repeated tokens",
        slug="no-repeated-type",
    )
