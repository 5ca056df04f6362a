"""How many rows, documents and zero rows there were: what every warning is made of."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.dataclass import dataclass
from isoscope.hashing import sorted_distinct
from isoscope.types import Array

SAMPLE = 256  # documents whose keys are kept


@dataclass(frozen=True)
class TallySummary:
    """Counts."""

    count: int
    width: int
    documents: int
    pairs: float  # sum over documents of rows squared
    zeros: int
    skipped: int  # rows with NaN or infinity that were dropped
    independent: bool  # every row is its own document


class Tally(Accumulator[TallySummary]):
    """Counts of rows, documents and zero rows.

    Also the smallest keys of documents: a sample by which runs of the same documents are
    recognised, whatever was measured.
    """

    documents: int = 0
    pairs: float = 0.0
    zeros: int = 0
    skipped: int = 0
    independent: bool = True
    totals = ("documents", "pairs", "zeros", "skipped", "independent")
    saved = (*totals, "sample")

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.sample = np.zeros(0, dtype=np.uint64)

    def skip(self, rows: int) -> None:
        """Count rows that could not be measured."""
        self.skipped += rows

    def add_counts(
        self, rows: int, documents: int, pairs: float, zeros: int, keys: Array
    ) -> None:
        """Count rows of documents that were summed elsewhere; `keys` are of the documents."""
        self.count += rows
        self.documents += documents
        self.pairs += pairs
        self.zeros += zeros
        self.independent = False
        self._keep(keys)

    def _add(self, block: Block) -> None:
        runs = block.members.runs
        rows = np.diff(runs)  # (documents,)
        self.documents += len(rows)
        self.pairs += float(np.square(rows, dtype=np.float64).sum())
        self.zeros += int(np.count_nonzero(block.squares == 0))
        self.independent &= block.independent
        self._keep(block.documents[runs[:-1]])

    def _absorb(self, other: Self) -> None:
        self._keep(other.sample)

    def _keep(self, keys: Array) -> None:
        """Keep the smallest of these keys and ours."""
        if len(self.sample) == SAMPLE:
            keys = keys[keys < self.sample[-1]]
        if len(keys):
            self.sample = sorted_distinct(self.sample, keys)[:SAMPLE]

    def _restore(self, state: Mapping[str, Array]) -> None:
        """Take over a state; runs of earlier versions have no sample."""
        super()._restore({"sample": self.sample, **state})

    def finalize(self) -> TallySummary:
        """Return the counts."""
        return TallySummary(
            count=self.count,
            width=self.width,
            documents=self.documents,
            pairs=self.pairs,
            zeros=self.zeros,
            skipped=self.skipped,
            independent=self.independent,
        )
