"""Several corpora of one kind, one after another: the files of a folder."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from isoscope.source.corpus.corpus import Corpus
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.dropped import Dropped
from isoscope.source.fingerprint import of_parts
from isoscope.types import Array


class Several(Corpus):
    """The documents of all parts; ids are those of the parts."""

    def __init__(self, parts: Sequence[Corpus], name: str, place: str) -> None:
        dropped = Dropped()
        for part in parts:
            dropped.merge(part.dropped)
        super().__init__(parts[0].kind, name, place, dropped)
        self._parts = parts
        self._ends = list(accumulate(len(part) for part in parts))

    def __len__(self) -> int:
        return self._ends[-1]

    def id(self, ordinal: int) -> str:
        """Return the id that the part gives."""
        part, at = self._found(ordinal)
        return part.id(at)

    def document(self, ordinal: int) -> Document:
        """Load one document from its part."""
        part, at = self._found(ordinal)
        return part.document(at)

    def keys(self) -> Array:
        """Hashes of the ids, which parts may have at hand."""
        return np.concatenate([part.keys() for part in self._parts])

    def stamp(self) -> str:
        """Compute the fingerprint of the parts, and of the names ids are made of."""
        return of_parts(each for part in self._parts for each in (part.name, part.fingerprint))

    def _found(self, ordinal: int) -> tuple[Corpus, int]:
        index = bisect_right(self._ends, self.within(ordinal))
        return self._parts[index], ordinal - (self._ends[index - 1] if index else 0)
