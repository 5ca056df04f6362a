"""How many rows, documents and zero rows there were: what every warning is made of."""

from dataclasses import dataclass

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block


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
    """Counts of rows, documents and zero rows."""

    documents: int = 0
    pairs: float = 0.0
    zeros: int = 0
    skipped: int = 0
    independent: bool = True
    saved = totals = ("documents", "pairs", "zeros", "skipped", "independent")

    def skip(self, rows: int) -> None:
        """Count rows that could not be measured."""
        self.skipped += rows

    def _add(self, block: Block) -> None:
        rows = np.diff(block.members.runs)  # (documents,)
        self.documents += len(rows)
        self.pairs += float(np.square(rows, dtype=np.float64).sum())
        self.zeros += int(np.count_nonzero(block.squares == 0))
        self.independent &= block.independent

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
