"""How many rows, documents and zero rows there were: what every warning is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.types import Array


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

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.documents = 0
        self.pairs = 0.0
        self.zeros = 0
        self.skipped = 0
        self.independent = True

    def skip(self, rows: int) -> None:
        """Count rows that could not be measured."""
        self.skipped += rows

    def uncount(self, documents: int) -> None:
        """Deduct documents that were counted once for each class of their rows."""
        self.documents -= documents

    def _add(self, block: Block) -> None:
        self.documents += len(block.runs) - 1
        self.pairs += float(np.square(np.diff(block.runs), dtype=np.float64).sum())
        self.zeros += int(np.count_nonzero(block.squares == 0))
        self.independent &= block.independent

    def _absorb(self, other: Self) -> None:
        self.documents += other.documents
        self.pairs += other.pairs
        self.zeros += other.zeros
        self.skipped += other.skipped
        self.independent &= other.independent

    def _arrays(self) -> dict[str, Array]:
        return {
            "documents": np.array(self.documents, dtype=np.int64),
            "pairs": np.array(self.pairs),
            "zeros": np.array(self.zeros, dtype=np.int64),
            "skipped": np.array(self.skipped, dtype=np.int64),
            "independent": np.array(self.independent, dtype=np.uint8),
        }

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.documents = int(state["documents"])
        self.pairs = float(state["pairs"])
        self.zeros = int(state["zeros"])
        self.skipped = int(state["skipped"])
        self.independent = bool(state["independent"])

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
