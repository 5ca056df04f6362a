"""Order of rows and documents: ordinals, and that the rows of a document are consecutive."""

from collections.abc import Iterable, Iterator

import numpy as np

from isoscope.errors import SourceError
from isoscope.types import Array, Chunk


def ordinals_of(chunk: Chunk) -> Array:
    """The ordinal of each row in its file, counted from 0, dropped rows included."""
    if chunk.ordinals is not None:
        return chunk.ordinals
    return np.arange(chunk.start, chunk.start + len(chunk))


def in_order(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks; raise an error where the rows of a document are not consecutive."""
    order = DocumentOrder()
    for chunk in chunks:
        order.find_starts(chunk)
        yield chunk


class UnsortedError(SourceError):
    """The rows of a document are not consecutive."""


class DocumentOrder:
    """The documents of consecutive chunks: where each begins, and that none begins twice."""

    def __init__(self) -> None:
        self._seen = SeenHashes()
        self._last: str | None = None

    def find_starts(self, chunk: Chunk) -> Array:
        """Return the indices of the rows that begin a document; refuse one seen before."""
        if chunk.documents is None or not len(chunk):
            return np.empty(0, dtype=np.int64)
        found = _starts(chunk.documents, self._last)
        names = [str(each) for each in chunk.documents[found].tolist()]
        hashes = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
        again = self._seen.add(hashes)
        if again is not None:
            raise _unsorted(chunk, int(found[again]), names[again])
        self._last = str(chunk.documents[-1])
        return found


class SeenHashes:
    """Hashes of the documents so far, 8 bytes each, in sorted runs of growing length.

    64 bits: among ten million documents the chance that any two collide, and a sorted
    file is refused, is below 3 in a million.
    """

    def __init__(self) -> None:
        self._runs: list[Array] = []

    def add(self, hashes: Array) -> int | None:
        """Add hashes; return the index of the first that was seen before, if any."""
        if not len(hashes):
            return None
        order = np.argsort(hashes, kind="stable")
        fresh = hashes[order]
        old = np.zeros(len(fresh), dtype=bool)
        old[1:] = fresh[1:] == fresh[:-1]
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, fresh), len(run) - 1)
            old |= run[place] == fresh
        if old.any():
            return int(order[old].min())
        self._runs.append(fresh)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            both = np.concatenate([self._runs.pop(), self._runs.pop()])
            both.sort(kind="stable")
            self._runs.append(both)
        return None


def _starts(documents: Array, last: str | None) -> Array:
    """Indices at which the document differs from that of the row before."""
    begins = np.ones(len(documents), dtype=bool)
    begins[1:] = documents[1:] != documents[:-1]
    begins[0] = str(documents[0]) != last
    return np.flatnonzero(begins)


def _unsorted(chunk: Chunk, index: int, name: str) -> UnsortedError:
    return UnsortedError(
        "expected the rows of a document to follow one another, "
        f"got document {name!r} again in row {ordinals_of(chunk)[index]} of {chunk.place}",
        hint="sort the rows by their document; ids must also differ between files",
        slug="documents-unsorted",
    )
