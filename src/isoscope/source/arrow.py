"""arrow: the IPC format, as a file mapped into memory or as a stream."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from isoscope.source.batch import Converter, first_width
from isoscope.source.border import border
from isoscope.source.feed import Feed
from isoscope.source.magic import ARROW_FILE, ARROW_STREAM, wrong_kind
from isoscope.source.schema import layout
from isoscope.source.shape import no_rows
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Chunk

KIND = "an arrow file"


def open_arrow(feed: Feed, wanted: Wanted) -> Source:
    """The rows of the vector column, or columns, of an arrow file or stream."""
    place = feed.place
    with feed.open(True) as stream:
        head = stream.read(8)
    if not head.startswith((ARROW_FILE, ARROW_STREAM)):
        raise wrong_kind(place, KIND, head)
    with border(place, KIND):
        with _reader(feed, head, peek=True) as reader:
            plan = layout(reader.schema, wanted, place)
            fields = [reader.schema.get_field_index(name) for name in plan.names]
            rows = reader.count_rows() if hasattr(reader, "count_rows") else None
        if rows == 0:
            raise no_rows(place)
        with _reader(feed, head, fields, peek=True) as reader:
            d = plan.width or first_width(_batches(reader), plan.vector[0], place)
    converter = Converter(plan, d, feed.name, place, wanted.skip_bad)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        start = 0
        with border(place, KIND), _reader(feed, head, fields) as reader:
            for batch in _batches(reader):
                for at in range(0, len(batch), limit):
                    piece = batch.slice(at, limit)
                    yield converter.chunk(piece, start, tally)
                    start += len(piece)
        if not start:
            raise no_rows(place)

    return Source(
        feed.name, d, rows, feed.rereadable, plan.dtype, place, read,
        lambda: feed.stamp(",".join(plan.vector)), has_documents="document" in plan.labels,
    )  # fmt: skip


@contextmanager
def _reader(
    feed: Feed, head: bytes, fields: list[int] | None = None, *, peek: bool = False
) -> Generator[Any]:
    """A reader of some or all columns, of a file or of a stream."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    with ExitStack() as stack:
        if feed.path is not None:
            source = stack.enter_context(pa.memory_map(str(feed.path)))
        else:
            source = stack.enter_context(pa.PythonFile(feed.open(peek), mode="r"))
        if head.startswith(ARROW_FILE) and feed.path is not None:
            yield stack.enter_context(pa.ipc.open_file(source, options=options))
            return
        if head.startswith(ARROW_FILE):
            source.read(8)  # behind its magic, a file is a stream with a table of contents
        yield stack.enter_context(pa.ipc.open_stream(source, options=options))


def _batches(reader: Any) -> Iterator[Any]:
    """Batches whose offsets point into them: Arrow would believe any, and crash."""
    whole = hasattr(reader, "num_record_batches")
    batches = map(reader.get_batch, range(reader.num_record_batches)) if whole else reader
    for batch in batches:
        batch.validate(full=True)
        yield batch
