"""Documents of consecutive rows, and segments that several processes read independently."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from isoscope.errors import SourceError
from isoscope.types import Array, Chunk

if TYPE_CHECKING:
    from isoscope.source.row_source import RowSource


def ordinals_of(chunk: Chunk) -> Array:
    """The ordinal of each row in its file, counted from 0, dropped rows included."""
    if chunk.ordinals is not None:
        return chunk.ordinals
    return np.arange(chunk.start, chunk.start + len(chunk))


class UnsortedError(SourceError):
    """The rows of a document are not consecutive."""


class DocumentOrder:
    """The documents of consecutive chunks: where each begins, and that none begins twice.

    Of the documents so far it keeps hashes, 8 bytes each, in sorted runs of growing length.
    64 bits: among ten million documents the chance that any two collide, and a sorted
    file is refused, is below 3 in a million.
    """

    def __init__(self) -> None:
        self._runs: list[Array] = []
        self._last: str | None = None

    def find_starts(self, chunk: Chunk) -> Array:
        """Return the indices of the rows that begin a document; refuse one seen before."""
        if chunk.documents is None or not len(chunk):
            return np.empty(0, dtype=np.int64)
        begins = np.ones(len(chunk), dtype=bool)
        begins[1:] = chunk.documents[1:] != chunk.documents[:-1]
        begins[0] = str(chunk.documents[0]) != self._last
        found = np.flatnonzero(begins)
        names = [str(each) for each in chunk.documents[found].tolist()]
        hashes = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
        again = self._add(hashes)
        if again is not None:
            raise UnsortedError(
                "expected the rows of a document to follow one another, got document "
                f"{names[again]!r} again in row {ordinals_of(chunk)[found[again]]} "
                f"of {chunk.place}",
                hint="sort the rows by their document; ids must also differ between files",
                slug="documents-unsorted",
            )
        self._last = str(chunk.documents[-1])
        return found

    def _add(self, hashes: Array) -> int | None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive rows of one or more consecutive parts of a source.

    Parts are the files of a folder; any other source is the only part of itself. With
    the default `start` and `stop`, the parts are read whole.
    """

    first: int  # index of the first part
    last: int  # index after the last part
    start: int = 0  # row of the first part to begin with
    stop: int | None = None  # row of the last part to end before; None: its end

    def ranges(self) -> Iterator[tuple[int, int, int | None]]:
        """Yield (part, start, stop) for each part; a stop of None is the end of the part."""
        for part in range(self.first, self.last):
            start = self.start if part == self.first else 0
            yield part, start, self.stop if part == self.last - 1 else None


def cut_segments(source: "RowSource", rows: int) -> tuple[Segment, ...]:
    """Cut a source into segments of about `rows` rows, none of which ends inside a document.

    A segment ends at the first row, from `rows` rows on, at which reading may begin and a
    document ends. Files of unknown length are cut from the files around them.
    """
    parts = source.parts or (source,)
    whole = (Segment(first=0, last=len(parts)),)
    alone = source.live or not source.rereadable
    short = source.rows is not None and source.rows <= rows
    uncut = len(parts) == 1 and len(parts[0].starts) == 1
    # Only a full pass notices a document that comes back.
    unseen = source.has_documents and any(part.documents is None for part in parts)
    if alone or short or uncut or unseen:
        return whole
    try:
        cuts = [(0, 0), *_cuts(parts, rows), (len(parts), 0)]
    except UnsortedError:
        if any(part.drops for part in parts):
            return whole  # the row may be one that is dropped: reading decides
        raise
    return tuple(
        Segment(first=first, last=last + bool(stop), start=start, stop=stop or None)
        for (first, start), (last, stop) in pairwise(cuts)
    )


def _cuts(parts: "Sequence[RowSource]", rows: int) -> Iterator[tuple[int, int]]:
    """Yield the part and row with which each segment but the first begins."""
    order = DocumentOrder()
    size = 0  # rows since the last cut, as far as the beginning of the part
    for index, part in enumerate(parts):
        full = size >= rows or (size > 0 and part.rows is None)
        for row in _cuts_inside(part, 0 if full else rows - size, rows, order):
            yield index, row
            size = -row
        size = rows if part.rows is None else size + part.rows


def _cuts_inside(part: "RowSource", due: int, rows: int, order: DocumentOrder) -> Iterator[int]:
    """Yield the rows of a part with which segments begin, none of them before row `due`."""
    if not part.has_documents:
        while (row := _next_start(part.starts, due)) is not None:
            yield row
            due = row + rows
        return
    for chunk in part.documents() if part.documents is not None else ():
        # Every chunk is checked, wherever the next cut is due.
        begins = order.find_starts(chunk)
        at = ordinals_of(chunk)
        while len(at) and (row := _next_start(part.starts, due)) is not None and row <= at[-1]:
            # The first row that is read behind the cut has to begin a document.
            behind = int(np.searchsorted(at, row))
            nearest = int(np.searchsorted(begins, behind))
            if nearest == len(begins):
                due = int(at[-1]) + 1
            elif begins[nearest] > behind:
                due = int(at[begins[nearest] - 1]) + 1
            else:
                yield row
                due = row + rows


def _next_start(starts: Sequence[int], due: int) -> int | None:
    """The first row, from `due` on, at which reading may begin."""
    index = bisect_left(starts, due)
    return starts[index] if index < len(starts) else None
