"""A source of rows: which columns are requested of it, and its vectors in chunks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from isoscope.errors import SourceError
from isoscope.source.segment import DocumentOrder, Segment, cut_segments
from isoscope.source.shape import bytes_per_number, rows_per_chunk
from isoscope.types import Chunk

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

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that are not part of the vector."""
        return tuple(self.roles.values())


@dataclass(slots=True)
class PassCounts:
    """Number of passes, and rows dropped by the current one."""

    skipped: int = 0
    passes: int = 0


# Limit of rows per chunk, counts, and the rows to begin with and to stop before (None: the
# end). A source that begins at row 0 only ignores the last two.
Read: TypeAlias = Callable[[int, PassCounts, int, int | None], Iterator[Chunk]]


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
                yield chunk
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
