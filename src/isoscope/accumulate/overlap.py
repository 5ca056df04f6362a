"""What sums over classes of rows miss: documents that have rows in several classes.

Sums over rows add up over classes. Sums over documents do not: a document with a special
token and twenty others is one document, and the pairs between the two are pairs within it.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import Cellwise
from isoscope.accumulate.directions import Directions
from isoscope.accumulate.groups import Groups
from isoscope.accumulate.moments import Moments
from isoscope.accumulate.sentences import Sentences, likeness
from isoscope.accumulate.sums import DocumentSums
from isoscope.accumulate.tally import Tally
from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS
from isoscope.types import Array


class Overlap(Cellwise[int]):
    """The cross terms between classes of rows within a document."""

    least = 0
    shapes = {  # noqa: RUF012
        "own": (),
        "pairs": (),
        "likeness": (),
        "sentences": (),
        "total": (),
        "rows": (),
    }
    saved = ("row_pairs", *Cellwise.saved)
    totals = ("row_pairs", *Cellwise.totals)
    row_pairs: float = 0.0

    def _add(self, block: Block) -> None:
        """Whole documents of one class overlap with nothing."""

    def add_meeting(self, met: "Meeting") -> None:
        """Take in what the classes of a batch have in common."""
        self.documents += met.surplus
        self.count += met.surplus
        self.row_pairs += met.row_pairs
        self._take_in(met.keys, met.folded, met.parts)

    def correct(self, merged: Iterable[Accumulator[object]]) -> None:
        """Correct the sums over documents of classes that were merged."""
        for part in merged:
            if isinstance(part, Cellwise | Moments | Tally):
                part.documents -= self.documents
            if type(part) is Directions:
                part.add_to_cells(self.keys, self.folded, self._only("own", "pairs"))
            if isinstance(part, Groups):
                parts = {"own": self.parts["total"], "pairs": self.parts["rows"]}
                part.add_to_cells(self.keys, self.folded, parts)
            if isinstance(part, Sentences):
                part.add_to_cells(self.keys, self.folded, self._only("likeness", "sentences"))
            if isinstance(part, Tally):
                part.pairs += self.row_pairs

    def _restore(self, state: Mapping[str, Array]) -> None:
        unknown = np.full(len(state["keys"]), np.nan)  # runs of older versions
        super()._restore({"total": unknown, "rows": unknown, **state})

    def _only(self, *names: str) -> dict[str, Array]:
        return {name: self.parts[name] for name in names}

    def finalize(self) -> int:
        """Return how many documents were counted more than once."""
        return self.documents


@dataclass(frozen=True)
class Meeting:
    """By how much the documents of several classes are more than those of each class."""

    keys: Array  # (cells,)
    folded: bool
    parts: dict[str, Array]
    surplus: int  # documents that were counted in more than one class
    row_pairs: float

    @classmethod
    def of(cls, classes: Sequence[DocumentSums], *, folded: bool) -> "Meeting":
        """Find the documents that have rows in several classes."""
        keys = np.unique(np.concatenate([each.keys for each in classes]))
        places = [np.searchsorted(keys, each.keys) for each in classes]  # each one once
        units, total = (np.zeros((len(keys), classes[0].units.shape[1])) for _ in range(2))
        nonzero, rows = np.zeros(len(keys)), np.zeros(len(keys))
        for each, place in zip(classes, places, strict=True):
            units[place] += each.units
            total[place] += each.total
            nonzero[place] += each.nonzero
            rows[place] += each.rows
        alike, counted = likeness(total, units, nonzero)
        own, pairs = np.vecdot(units, units), nonzero**2
        whole, squared = np.vecdot(total, total), rows**2
        for each, place in zip(classes, places, strict=True):
            own[place] -= np.vecdot(each.units, each.units)
            pairs[place] -= each.nonzero**2
            apart = likeness(each.total, each.units, each.nonzero)
            alike[place] -= apart[0]
            counted[place] -= apart[1]
            whole[place] -= np.vecdot(each.total, each.total)
            squared[place] -= each.rows**2
        row_pairs = float(squared.sum())
        surplus = sum(len(place) for place in places) - len(keys)
        if folded:
            groups = (keys % np.uint64(GROUPS)).astype(np.int64)
            keys, folds = np.unique(groups, return_inverse=True)
            own, pairs, alike, counted, whole, squared = (
                np.bincount(folds, part)
                for part in (own, pairs, alike, counted, whole, squared)
            )
        parts = {
            "own": own,
            "pairs": pairs,
            "likeness": alike,
            "sentences": counted,
            "total": whole,
            "rows": squared,
        }
        return cls(keys.astype(np.uint64), folded, parts, surplus, row_pairs)
