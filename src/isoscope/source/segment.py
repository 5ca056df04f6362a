"""Segments: parts of a source that several processes can read independently."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from isoscope.source.order import DocumentOrder, UnsortedError, ordinals_of
from isoscope.source.row_source import RowSource


class Segment(msgspec.Struct, frozen=True, kw_only=True):
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


def cut_segments(source: RowSource, rows: int) -> tuple[Segment, ...]:
    """Cut a source into segments of about `rows` rows, none of which ends inside a document.

    A segment ends at the first row, from `rows` rows on, at which reading may begin and a
    document ends. Files of unknown length are cut from the files around them.
    """
    parts = source.parts or (source,)
    whole = (Segment(first=0, last=len(parts)),)
    if source.live or not source.rereadable:
        return whole
    if source.rows is not None and source.rows <= rows:
        return whole
    if len(parts) == 1 and len(parts[0].starts) == 1:
        return whole
    if source.has_documents and any(part.documents is None for part in parts):
        return whole  # only a full pass notices a document that comes back
    try:
        cuts = list(_cuts(parts, rows))
    except UnsortedError:
        if any(part.drops for part in parts):
            return whole  # the row may be one that is dropped: reading decides
        raise
    return tuple(_between([(0, 0), *cuts], len(parts)))


def _cuts(parts: Sequence[RowSource], rows: int) -> Iterator[tuple[int, int]]:
    """Yield the part and row with which each segment but the first begins."""
    order = DocumentOrder()
    size = 0  # rows since the last cut, as far as the beginning of the part
    for index, part in enumerate(parts):
        full = size >= rows or (size > 0 and part.rows is None)
        for row in _cuts_inside(part, 0 if full else rows - size, rows, order):
            yield index, row
            size = -row
        size = rows if part.rows is None else size + part.rows


def _cuts_inside(part: RowSource, due: int, rows: int, order: DocumentOrder) -> Iterator[int]:
    """Yield the rows of a part with which segments begin, none of them before row `due`."""
    if not part.has_documents:
        while (row := _next_start(part.starts, due)) is not None:
            yield row
            due = row + rows
        return
    for chunk in part.documents() if part.documents is not None else ():
        begins = order.find_starts(
            chunk
        )  # every chunk is checked, wherever the next cut is due
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


def _between(cuts: list[tuple[int, int]], parts: int) -> Iterator[Segment]:
    for (first, start), (last, stop) in zip(cuts, [*cuts[1:], (parts, 0)], strict=True):
        if stop:
            yield Segment(first=first, last=last + 1, start=start, stop=stop)
        else:
            yield Segment(first=first, last=last, start=start)
