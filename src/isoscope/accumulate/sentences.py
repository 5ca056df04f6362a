"""How alike the rows of a document are: their cosine to the document's mean vector."""

from dataclasses import dataclass, replace

import numpy as np

from isoscope.accumulate.block import Block
from isoscope.accumulate.cells import Cellwise
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


@dataclass(frozen=True)
class SentencesSummary:
    """Sums over documents, for every group of them."""

    likeness: Array  # (groups,) sum over documents of the mean cosine to their mean
    sentences: Array  # (groups,) documents that have two rows with a direction
    count: int  # rows
    documents: int
    keys: Array  # (groups,) which groups of documents they are

    @property
    def groups(self) -> int:
        """How many groups an interval can be computed from."""
        return len(self.sentences)

    @property
    def sizes(self) -> Array:
        """Documents in each group: each counts the same, however long it is."""
        return self.sentences

    def without(self, group: int) -> "SentencesSummary":
        """Return the summary as if a group had never been seen."""
        keep = np.arange(self.groups) != group
        names = ("likeness", "sentences", "keys")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


class Sentences(Cellwise[SentencesSummary]):
    """Sum over documents of the mean cosine of their rows to their mean vector."""

    shapes = {"likeness": "", "sentences": ""}  # noqa: RUF012

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
        self._take_in(cells.keys, cells.folded, parts)
        self.documents += len(seen.keys)

    def finalize(self) -> SentencesSummary:
        """Return the sums of every group that has a document of two rows."""
        seen = self.parts["sentences"] > 0
        if not seen.any():
            raise TooFewRowsError(
                "sentence-similarity needs a document of at least 2 rows, got none",
                hint="say which document each row is from, or give longer documents",
                slug="too-few-documents",
            )
        named = {name: self.parts[name][seen].copy() for name in self.shapes}
        return SentencesSummary(
            **named, count=self.count, documents=self.documents, keys=self.keys[seen]
        )
