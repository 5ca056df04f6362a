"""How many rows, documents and zero rows there were: what every warning is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    zeros: int
    independent: bool  # every row is its own document


class Tally(Accumulator[TallySummary]):
    """Counts of rows, documents and zero rows."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.documents = 0
        self.zeros = 0
        self.independent = True

    def _add(self, block: Block) -> None:
        self.documents += len(block.runs) - 1
        self.zeros += int(np.count_nonzero(block.squares == 0))
        self.independent &= block.independent

    def _absorb(self, other: Any) -> None:
        self.documents += other.documents
        self.zeros += other.zeros
        self.independent &= other.independent

    def _arrays(self) -> dict[str, Array]:
        return {
            "documents": np.array(self.documents, dtype=np.int64),
            "zeros": np.array(self.zeros, dtype=np.int64),
            "independent": np.array(self.independent, dtype=np.uint8),
        }

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.documents = int(state["documents"])
        self.zeros = int(state["zeros"])
        self.independent = bool(state["independent"])

    def finalize(self) -> TallySummary:
        """Return the counts."""
        return TallySummary(
            self.count, self.width, self.documents, self.zeros, self.independent
        )
