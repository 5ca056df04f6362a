"""The source: rows in chunks, and what is known of them before they are read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from isoscope.errors import SourceError
from isoscope.source.order import in_order
from isoscope.source.shape import rows_per_chunk, widened
from isoscope.types import Chunk


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asks of a source besides where it is; names of columns or members."""

    column: str | None = None
    document: str | None = None
    id: str | None = None
    text: str | None = None
    skip_bad: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that are carried along and are no part of the vector."""
        return tuple(name for name in (self.document, self.id, self.text) if name is not None)


@dataclass(slots=True)
class Tally:
    """What one pass has dropped so far."""

    skipped: int = 0
    passes: int = 0


Read = Callable[[int, Tally], Iterator[Chunk]]  # at most so many rows a chunk


@dataclass(frozen=True)
class Source:
    """Rows of vectors, from wherever they come, in chunks of bounded size."""

    name: str
    width: int
    rows: int | None  # where it is known without reading them; dropped ones included
    rereadable: bool
    dtype: str  # of the numbers as stored
    place: str  # the file or folder, for messages
    read: Read = field(repr=False)
    stamp: Callable[[], str] = field(repr=False)
    has_documents: bool = False
    parts: tuple["Source", ...] = field(default=(), repr=False)  # the files of a folder
    tally: Tally = field(default_factory=Tally, repr=False)

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """Yield the rows in order, at most `rows` (default: about 24 MB) at a time.

        The arrays may be read-only views into a file. Each call starts again from the
        first row where the source is rereadable.
        """
        if rows is not None and rows < 1:
            raise ValueError(f"a chunk needs at least 1 row, got {rows}")
        if self.tally.passes and not self.rereadable:
            raise SourceError(
                f"cannot read {self.place} with a second pass",
                hint="save the stream to a file and give its path",
                slug="stdin-once",
            )
        return self._pass(rows or rows_per_chunk(self.width, self.dtype))

    def _pass(self, limit: int) -> Iterator[Chunk]:
        self.tally.passes += 1
        self.tally.skipped = 0
        chunks = self.read(limit, self.tally)
        yield from in_order(chunks) if self.has_documents else chunks

    @property
    def itemsize(self) -> int:
        """Bytes a number takes once it is read, as float32 or float64."""
        return widened(self.dtype)

    @property
    def skipped(self) -> int:
        """Rows that the last pass dropped because they could not be read as vectors."""
        return self.tally.skipped

    @cached_property
    def fingerprint(self) -> str:
        """What tells this content from other content; of a stream, known once it is read."""
        return self.stamp()
