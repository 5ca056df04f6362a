"""How alike the rows of a document are: their cosine to the document's mean vector."""

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cellwise import ByGroup, Cellwise
from isoscope.dataclass import dataclass
from isoscope.errors import TooFewRowsError
from isoscope.types import Array


def likeness(total: Array, units: Array, nonzero: Array) -> tuple[Array, Array]:
    """Return for each document the mean cosine of its rows to its mean, and if it counts.

    The mean cosine of unit vectors u to a direction m is the cosine sum's own mean:
    (1/n) sum_i m . u_i = m . (sum_i u_i) / n. So the sum of the rows and the sum of their
    unit vectors are enough. A single row is its own mean and does not count.
    """
    lengths = np.sqrt(np.vecdot(total, total))
    counts = (nonzero >= 2) & (lengths > 0)
    scale = np.where(counts, lengths * nonzero, 1.0)
    return np.where(counts, np.vecdot(total, units) / scale, 0.0), counts.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class SentencesSummary(ByGroup):
    """Sums over documents, for every group of them.

    `sizes` are the documents that have two rows with a direction: each counts the same,
    however long it is.
    """

    arrays = ("likeness",)
    likeness: Array  # (groups,) sum over documents of the mean cosine to their mean
    rows: int


class Sentences(Cellwise[SentencesSummary]):
    """Sum over documents of the mean cosine of their rows to their mean vector."""

    shapes = {"likeness": (), "sentences": ()}  # noqa: RUF012

    def _add(self, block: Block) -> None:
        if block.independent:
            return
        seen = block.by_document
        alike, counted = likeness(seen.total, seen.units, seen.nonzero)
        cells = block.cells
        starts = np.r_[0, np.cumsum(seen.rows)[:-1]]
        where = np.searchsorted(cells.starts, starts, side="right") - 1
        parts = {
            "likeness": np.bincount(where, alike, len(cells.keys)),
            "sentences": np.bincount(where, counted, len(cells.keys)),
        }
        self._add_block(block, parts)

    def finalize(self) -> SentencesSummary:
        """Return the sums of every group that has a document of two rows."""
        seen = self.parts["sentences"] > 0
        if not seen.any():
            raise TooFewRowsError(
                "sentence-similarity needs a document of at least 2 rows, got none",
                hint="say which document each row is from, or give longer documents",
                slug="too-few-documents",
            )
        return SentencesSummary(
            keys=self.keys[seen],
            sizes=self.parts["sentences"][seen],
            documents=self.documents,
            likeness=self.parts["likeness"][seen],
            rows=self.count,
        )
