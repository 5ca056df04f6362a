"""Documents in order: notices a document that comes back after another one has begun."""

from collections.abc import Iterable, Iterator

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.ordinal import ordinal
from isoscope.types import Array, Chunk


def in_order(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Pass chunks on; stop with an error where the rows of a document are not consecutive."""
    order = Order()
    for chunk in chunks:
        order.begins(chunk)
        yield chunk


class UnsortedError(SourceError):
    """The rows of a document are not consecutive."""


class Order:
    """The documents of consecutive chunks: where each begins, and that none comes back."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._last: str | None = None

    def begins(self, chunk: Chunk) -> Array:
        """Return the indices of the rows that begin a document; refuse one that was there."""
        if chunk.documents is None or not len(chunk):
            return np.empty(0, dtype=np.int64)
        found = _begins(chunk.documents, self._last)
        names = [str(each) for each in chunk.documents[found].tolist()]
        hashes = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
        again = self._seen.add(hashes)
        if again is not None:
            raise _unsorted(chunk, int(found[again]), names[again])
        self._last = str(chunk.documents[-1])
        return found


class Seen:
    """Hashes of the documents so far, 8 bytes each, in sorted runs of growing length.

    64 bits: among ten million documents the chance that any two collide, and a sorted
    file is refused, is below 3 in a million.
    """

    def __init__(self) -> None:
        self._runs: list[Array] = []

    def add(self, hashes: Array) -> int | None:
        """Take in hashes; return the index of the first that was there before, if any."""
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


def _begins(documents: Array, last: str | None) -> Array:
    """Indices at which another document begins than the one before."""
    begins = np.ones(len(documents), dtype=bool)
    begins[1:] = documents[1:] != documents[:-1]
    begins[0] = str(documents[0]) != last
    return np.flatnonzero(begins)


def _unsorted(chunk: Chunk, index: int, name: str) -> UnsortedError:
    return UnsortedError(
        "expected the rows of a document to follow one another, "
        f"got document {name!r} again in row {ordinal(chunk, index)} of {chunk.place}",
        hint="sort the rows by their document; ids must also differ between files",
        slug="documents-unsorted",
    )
