"""A source of rows: the request, vectors in chunks, checks, documents, and segments of it.

Documents are consecutive rows; segments are read by several processes independently.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import SourceError
from isoscope.types import Array, Chunk, as_rows

MAX_WIDTH = 1 << 20  # a row must fit into memory many times over
CHUNK_BYTES = 24e6
DECODED_BYTES = 8e6  # for formats that need room for decoding besides the rows
Role = str  # of a column that accompanies the vectors: one of these three
ROLES: tuple[Role, ...] = ("document", "id", "text")


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """What a caller selects: the columns or arrays of vectors and labels, and whether
    rows that are not vectors are dropped.
    """

    column: str | None = None
    document: str | None = None
    id: str | None = None
    text: str | None = None
    skip_bad: bool = False

    @property
    def roles(self) -> dict[Role, str]:
        """The columns of labels by role."""
        names = (self.document, self.id, self.text)
        return {role: name for role, name in zip(ROLES, names, strict=True) if name is not None}


@dataclass(slots=True)
class PassCounts:
    """Number of passes, and rows dropped by the current one."""

    skipped: int = 0
    passes: int = 0


# Limit of rows per chunk, counts, and the rows to begin with and to stop before (None: the
# end). A source that begins at row 0 only ignores the last two.
Read: TypeAlias = Callable[[int, PassCounts, int, int | None], Iterator[Chunk]]


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


@dataclass(frozen=True)
class RowSource:
    """Rows of vectors in chunks of bounded size, from a file, a folder, a stream or memory."""

    name: str
    width: int
    rows: int | None  # where it is known without reading them; dropped ones included
    rereadable: bool
    dtype: str  # of the numbers as stored
    place: str  # the file or folder, for messages
    read: Read = field(repr=False)
    stamp: Callable[[], str] = field(repr=False)
    has_documents: bool = False
    live: bool = False  # in memory or a stream: no other process can open it again
    drops: bool = False  # rows that are not vectors are dropped instead of an error
    # The rows at which reading may begin without reading those before, ascending.
    starts: Sequence[int] = field(default=(0,), repr=False)
    # The documents without their vectors, as chunks of width 0; None where that means
    # reading everything.
    documents: Callable[[], Iterator[Chunk]] | None = field(default=None, repr=False)
    parts: tuple["RowSource", ...] = field(default=(), repr=False)  # the files of a folder
    counts: PassCounts = field(default_factory=PassCounts, repr=False)

    def chunks(
        self, rows: int | None = None, segment: Segment | None = None
    ) -> Iterator[Chunk]:
        """Yield the rows in order, at most `rows` (default: about 24 MB) at a time.

        The arrays may be read-only views into a file. Each call starts again from the
        first row where the source is rereadable. With a segment, only its rows are read;
        that documents do not come back is then checked within the segment, and has been
        checked across segments by `segments`.
        """
        if rows is not None and rows < 1:
            raise ValueError(f"a chunk needs at least 1 row, got {rows}")
        if self.counts.passes and not self.rereadable:
            raise SourceError(
                f"cannot read {self.place} with a second pass",
                hint="save the stream to a file and pass its path",
                slug="stdin-once",
            )
        if segment is not None:
            self._check(segment)
        return self._pass(rows or rows_per_chunk(self.width, self.dtype), segment)

    def segments(self, rows: int) -> tuple[Segment, ...]:
        """Cut the source into consecutive segments of about `rows` rows.

        Their chunks, one segment after another, are the rows of `chunks` with the same
        ordinals and labels. The cuts follow from the content and `rows` alone, so another
        process that opens the same files finds the same ones.

        A segment never ends inside a document. npy and safetensors files in C order and
        stored npz arrays are cut at any row, parquet files between row groups, all others
        between files. Live sources and streams are one segment. Documents in files whose
        documents cannot be read alone (csv, jsonl) make the whole source one segment.

        A document that comes back in a later segment cannot be noticed by the reader of
        one segment: the documents are read here, without the vectors, and the error that
        `chunks` would raise is raised here. Where rows may be dropped, and with them the
        reason for the error, the source becomes one segment and `chunks` decides.
        """
        if rows < 1:
            raise ValueError(f"a segment needs at least 1 row, got {rows}")
        return cut_segments(self, rows)

    def _check(self, segment: Segment) -> None:
        """Refuse a segment that is not one of this source."""
        parts = self.parts or (self,)
        fits = 0 <= segment.first < segment.last <= len(parts)
        for part, start, stop in segment.ranges() if fits else ():
            starts = parts[part].starts
            fits = fits and start in starts
            fits = fits and (stop is None or (stop in starts and start < stop))
        if not fits:
            raise ValueError(f"{self.place} has no segment {segment}")

    def _pass(self, limit: int, segment: Segment | None) -> Iterator[Chunk]:
        self.counts.passes += 1
        self.counts.skipped = 0
        order = DocumentOrder()
        parts = self.parts or (self,)
        segment = segment or Segment(first=0, last=len(parts))
        for index, start, stop in segment.ranges():
            for chunk in parts[index].read(limit, self.counts, start, stop):
                order.find_starts(chunk)  # refuses documents that come back
                yield replace(chunk, part=index) if index else chunk
                del chunk  # before the next one is read: it may be large

    @property
    def itemsize(self) -> int:
        """Bytes per number once it is read, as float32 or float64."""
        return bytes_per_number(self.dtype)

    @property
    def skipped(self) -> int:
        """Rows that the last pass dropped because they could not be read as vectors."""
        return self.counts.skipped

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the content; of a stream, known once it is read."""
        return self.stamp()


def rows_per_chunk(width: int, dtype: str, budget: float = CHUNK_BYTES) -> int:
    """Rows of this width that fit into the budget of bytes, as float32 or float64.

    At least 256, for the sake of matrix products, unless that is four times the budget.
    """
    row = max(1, width) * bytes_per_number(dtype)
    return int(max(budget // row, min(256, 4 * budget // row), 1))


def bytes_per_number(dtype: str) -> int:
    """Bytes per number as float32 or float64."""
    if dtype == "bfloat16":
        return 4
    return as_rows(np.empty(0, dtype=dtype)).dtype.itemsize


def plain_rows(block: Array) -> Array:
    """Rows in C order and native bytes, float32 or float64; a view where that is possible."""
    native = block.dtype.newbyteorder("=")
    # as_rows compares with native types only: swapped float64 would come out as float32.
    with np.errstate(over="ignore"):  # long doubles beyond double become infinite
        return as_rows(np.require(block, dtype=native, requirements=["C", "A"]))


def check_matrix(shape: tuple[int, ...], place: str) -> tuple[int, int]:
    """Return (n, d) of an array of vectors, or refuse what is not one."""
    if len(shape) != 2:
        raise SourceError(
            f"expected a two-dimensional array (rows, width) in {place}, "
            f"got {len(shape)} dimension{'' if len(shape) == 1 else 's'} {shape}",
            hint="one row is one vector: reshape to (rows, width)"
            if len(shape) < 2
            else "flatten all but the last axis: rows.reshape(-1, rows.shape[-1])",
            slug="not-two-dimensional",
        )
    n, d = shape
    if n == 0:
        raise no_rows(place)
    check_width(d, place)
    return n, d


def check_width(d: int, place: str) -> int:
    """Return the width of vectors, or refuse one that cannot be right."""
    if d == 0:
        raise SourceError(
            f"expected vectors of width 1 or more in {place}, got width 0",
            hint="check the step that writes the vectors",
            slug="width-zero",
        )
    if d > MAX_WIDTH:
        raise SourceError(
            f"expected vectors of width {MAX_WIDTH} at most in {place}, got width {d}",
            hint="one row is one vector: transpose the array if it lies the other way round",
            slug="width-too-large",
        )
    return d


def no_rows(place: str) -> SourceError:
    """Return the error for a source without rows."""
    return SourceError(
        f"expected vectors in {place}, got 0 rows",
        hint="check the step that writes it, and any filter before that",
        slug="no-rows",
    )


def check_numeric(dtype: np.dtype[np.generic], place: str) -> None:
    """Refuse an array that does not hold real numbers."""
    if dtype.kind not in "fiub":
        got, error = _NOT_REAL["" if dtype.names else dtype.kind]
        raise error(f"expected real numbers in {place}, got {got.format(dtype)}")


_STRINGS = (
    "strings ({})",
    partial(SourceError, hint="save the vectors as numbers, not as text", slug="strings"),
)
_NOT_REAL = defaultdict(  # what was found and its error, by the kind of a type
    lambda: (
        "the type {}",
        partial(
            SourceError,
            hint="save a plain two-dimensional array of floats or integers",
            slug="dtype-unsupported",
        ),
    ),
    c=(
        "complex numbers ({})",
        partial(
            SourceError,
            hint="take the real part, or stack real and imaginary parts as columns",
            slug="complex-numbers",
        ),
    ),
    O=(
        "pickled or Python objects",
        partial(
            SourceError,
            hint="save an array of numbers: np.save(path, np.stack(rows).astype('float32'))",
            slug="objects",
        ),
    ),
    S=_STRINGS,
    U=_STRINGS,
    V=(
        "raw bytes ({})",
        partial(
            SourceError,
            hint="convert to float32 and save again; safetensors has bfloat16, npy has not",
            slug="dtype-unsupported",
        ),
    ),
)


def cut_segments(source: RowSource, rows: int) -> tuple[Segment, ...]:
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
