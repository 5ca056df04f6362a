"""A source of rows: vectors in chunks, and what is known of them before they are read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from isoscope.errors import SourceError
from isoscope.source.order import in_order
from isoscope.source.shape import bytes_per_number, rows_per_chunk
from isoscope.types import Chunk

if TYPE_CHECKING:
    from isoscope.source.segment import Segment


@dataclass(slots=True)
class PassCounts:
    """Number of passes, and rows dropped by the current one."""

    skipped: int = 0
    passes: int = 0


Read = Callable[[int, PassCounts], Iterator[Chunk]]  # the limit of rows per chunk


@dataclass(frozen=True, slots=True)
class Seek:
    """How to read rows in the middle of a file without reading those before them."""

    starts: Sequence[int]  # rows at which reading may begin and end, ascending from 0
    read: Callable[
        [int, PassCounts, int, int | None], Iterator[Chunk]
    ]  # from a start to a stop


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
    seek: Seek | None = field(default=None, repr=False)
    # The documents without their vectors, as chunks of width 0; None where that means
    # reading everything.
    documents: Callable[[], Iterator[Chunk]] | None = field(default=None, repr=False)
    parts: tuple["RowSource", ...] = field(default=(), repr=False)  # the files of a folder
    counts: PassCounts = field(default_factory=PassCounts, repr=False)

    def chunks(
        self, rows: int | None = None, segment: "Segment | None" = None
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

    def segments(self, rows: int) -> tuple["Segment", ...]:
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
        from isoscope.source.segment import cut_segments  # loads msgspec: only for a plan

        if rows < 1:
            raise ValueError(f"a segment needs at least 1 row, got {rows}")
        return cut_segments(self, rows)

    def _check(self, segment: "Segment") -> None:
        """Refuse a segment that is not one of this source."""
        parts = self.parts or (self,)
        fits = 0 <= segment.first < segment.last <= len(parts)
        for part, start, stop in segment.ranges() if fits else ():
            starts = parts[part].starts
            fits = fits and start in starts and (stop is None or stop in starts)
            fits = fits and (stop is None or start < stop)
        if not fits:
            raise ValueError(f"{self.place} has no segment {segment}")

    def _pass(self, limit: int, segment: "Segment | None") -> Iterator[Chunk]:
        self.counts.passes += 1
        self.counts.skipped = 0
        chunks = (
            self.read(limit, self.counts)
            if segment is None
            else self._read_segment(limit, segment)
        )
        yield from in_order(chunks) if self.has_documents else chunks

    def _read_segment(self, limit: int, segment: "Segment") -> Iterator[Chunk]:
        parts = self.parts or (self,)
        for index, start, stop in segment.ranges():
            part = parts[index]
            if part.seek is None or (start == 0 and stop is None):
                yield from part.read(limit, self.counts)
            else:
                yield from part.seek.read(limit, self.counts, start, stop)

    @property
    def starts(self) -> Sequence[int]:
        """The rows at which reading may begin without reading those before."""
        return (0,) if self.seek is None else self.seek.starts

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


def read_parts(parts: Sequence[RowSource]) -> Read:
    """A reader of all rows of several sources, one source after another."""

    def read(limit: int, counts: PassCounts) -> Iterator[Chunk]:
        for part in parts:
            yield from part.read(limit, counts)

    return read
