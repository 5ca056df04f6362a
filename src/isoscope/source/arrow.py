"""arrow: the IPC format, as a file mapped into memory or as a stream."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from isoscope.source.border import ARROW_FILE, ARROW_STREAM, border, wrong_kind
from isoscope.source.bytes import ByteSource
from isoscope.source.record_batch import BatchTable, table_source
from isoscope.source.row_source import RowSource, VectorRequest

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "an arrow file"


def open_arrow(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of the vector column, or columns, of an arrow file or stream."""
    head = data.head(8)
    if not head.startswith((ARROW_FILE, ARROW_STREAM)):
        raise wrong_kind(data.place, KIND, head)
    is_file = head.startswith(ARROW_FILE)
    with border(data.place, KIND):
        rows = _count_rows(data) if is_file else None
        with _open_reader(data, peek=True, is_file=is_file) as reader:
            schema = reader.schema

    def read(columns: list[str], *, peek: bool) -> Iterator["pa.RecordBatch"]:
        fields = [schema.get_field_index(name) for name in columns]
        with _open_reader(data, fields, peek=peek, is_file=is_file) as reader:
            yield from map(_validate, reader)

    table = BatchTable(
        data.name,
        data.place,
        KIND,
        schema,
        rows,
        lambda columns, _limit, _start, _stop: read(columns, peek=False),
        lambda columns: read(columns, peek=True),
        data.stamp,
        rereadable=data.rereadable,
    )
    return table_source(table, request)


def _count_rows(data: ByteSource) -> int | None:
    """The rows of a file, from its table of contents at the end; a stream has none."""
    import pyarrow as pa

    if data.path is None:
        return None
    with pa.memory_map(str(data.path)) as source, pa.ipc.open_file(source) as reader:
        return reader.count_rows()


@contextmanager
def _open_reader(
    data: ByteSource, fields: list[int] | None = None, *, peek: bool, is_file: bool
) -> Generator["pa.RecordBatchStreamReader"]:
    """A reader of some or all columns.

    After its magic, a file is a stream with a table of contents. Read as a stream, its
    batches stay where they are mapped; read by that table, they would be copied whole.
    """
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    with ExitStack() as stack:
        if data.path is not None:
            source = stack.enter_context(pa.memory_map(str(data.path)))
        else:
            source = stack.enter_context(pa.PythonFile(data.open(peek=peek), mode="r"))
        if is_file:
            source.read(8)
        yield stack.enter_context(pa.ipc.open_stream(source, options=options))


def _validate(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Check that the offsets of a batch point into it: Arrow would trust any, and crash."""
    batch.validate(full=True)
    return batch
