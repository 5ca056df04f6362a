"""arrow: the IPC format, as a file mapped into memory or as a stream."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from isoscope.source.batch import Converter, first_width
from isoscope.source.border import border
from isoscope.source.feed import Feed, peeked
from isoscope.source.labels import DOCUMENTS_PER_CHUNK
from isoscope.source.magic import ARROW_FILE, ARROW_STREAM, wrong_kind
from isoscope.source.schema import layout
from isoscope.source.shape import DECODED_BYTES, no_rows, rows_per_chunk
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Chunk

KIND = "an arrow file"


def open_arrow(feed: Feed, wanted: Wanted) -> Source:
    """The rows of the vector column, or columns, of an arrow file or stream."""
    place = feed.place
    head = peeked(feed, 8)
    if not head.startswith((ARROW_FILE, ARROW_STREAM)):
        raise wrong_kind(place, KIND, head)
    with border(place, KIND):
        rows = _counted(feed) if head.startswith(ARROW_FILE) else None
        if rows == 0:
            raise no_rows(place)
        with _reader(feed, head, peek=True) as reader:
            plan = layout(reader.schema, wanted, place)
            fields = [reader.schema.get_field_index(name) for name in plan.names]
        with _reader(feed, head, fields, peek=True) as reader:
            d = plan.width or first_width(map(_valid, reader), plan.vector[0], place)
    converter = Converter(plan, d, feed.name, place, wanted.skip_bad)

    most = rows_per_chunk(d, plan.dtype, DECODED_BYTES)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        start = 0
        with border(place, KIND), _reader(feed, head, fields) as reader:
            batches = map(_valid, reader)
            while (batch := next(batches, None)) is not None:
                for at in range(0, len(batch), min(limit, most)):
                    piece = batch.slice(at, min(limit, most))
                    chunk = converter.chunk(piece, start, tally)
                    yield chunk if len(piece) == len(batch) else _owned(chunk)
                    start += len(piece)
                    del piece, chunk
                del batch  # before the next one: both may be unpacked, and large
        if not start:
            raise no_rows(place)

    def documents() -> Iterator[Chunk]:
        start = 0
        only = [fields[plan.names.index(plan.labels["document"])]]
        with border(place, KIND), _reader(feed, head, only) as reader:
            for batch in map(_valid, reader):
                for at in range(0, len(batch), DOCUMENTS_PER_CHUNK):
                    piece = batch.slice(at, DOCUMENTS_PER_CHUNK)
                    yield converter.documents(piece, start + at)
                start += len(batch)

    return Source(
        feed.name, d, rows, feed.rereadable, plan.dtype, place, read,
        lambda: feed.stamp(",".join(plan.vector)), has_documents="document" in plan.labels,
        drops=wanted.skip_bad, documents=documents if "document" in plan.labels else None,
    )  # fmt: skip


def _counted(feed: Feed) -> int | None:
    """The rows of a file, from its table of contents at the end; a stream has none."""
    import pyarrow as pa

    if feed.path is None:
        return None
    with pa.memory_map(str(feed.path)) as source, pa.ipc.open_file(source) as reader:
        return reader.count_rows()


@contextmanager
def _reader(
    feed: Feed, head: bytes, fields: list[int] | None = None, *, peek: bool = False
) -> Generator[Any]:
    """A reader of some or all columns.

    Behind its magic, a file is a stream with a table of contents. Read as one, its
    batches stay where they are mapped; read by that table, they would be copied whole.
    """
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    with ExitStack() as stack:
        if feed.path is not None:
            source = stack.enter_context(pa.memory_map(str(feed.path)))
        else:
            source = stack.enter_context(pa.PythonFile(feed.open(peek), mode="r"))
        if head.startswith(ARROW_FILE):
            source.read(8)
        yield stack.enter_context(pa.ipc.open_stream(source, options=options))


def _valid(batch: Any) -> Any:
    """A batch whose offsets point into it: Arrow would believe any, and crash."""
    batch.validate(full=True)
    return batch


def _owned(chunk: Chunk) -> Chunk:
    """A chunk with arrays of its own: a view would keep the whole batch alive."""
    documents = None if chunk.documents is None else chunk.documents.copy()
    return replace(chunk, rows=chunk.rows.copy(), documents=documents)
