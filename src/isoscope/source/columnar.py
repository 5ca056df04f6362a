"""Columnar files: arrow, mapped into memory or streamed, and parquet, in small batches."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, cast

from isoscope.source.bytes import ByteSource
from isoscope.source.file_errors import ARROW_FILE, ARROW_STREAM, PARQUET, border, wrong_kind
from isoscope.source.record_batch import BatchTable, table_source
from isoscope.source.row_source import RowSource, VectorRequest

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ARROW_KIND = "an arrow file"
PARQUET_KIND = "a parquet file"


def open_arrow(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of the vector column, or columns, of an arrow file or stream."""
    head = data.head(8)
    if not head.startswith((ARROW_FILE, ARROW_STREAM)):
        raise wrong_kind(data.place, ARROW_KIND, head)
    is_file = head.startswith(ARROW_FILE)
    with border(data.place, ARROW_KIND):
        rows = _count_rows(data) if is_file else None
        with _open_reader(data, peek=True, is_file=is_file) as reader:
            schema = reader.schema

    def read(columns: list[str], *, peek: bool) -> Iterator["pa.RecordBatch"]:
        fields = [schema.get_field_index(name) for name in columns]
        with _open_reader(data, fields, peek=peek, is_file=is_file) as reader:
            # Not a loop: its variable would hold a batch in memory while the next is unpacked.
            yield from map(_validate, reader)

    table = BatchTable(
        data.name,
        data.place,
        ARROW_KIND,
        schema,
        rows,
        lambda columns, _limit, _start, _stop: read(columns, peek=False),
        lambda columns: read(columns, peek=True),
        data.stamp,
        rereadable=data.rereadable,
    )
    return table_source(table, request)


def _validate(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return a batch whose offsets point into it: Arrow would trust any, and crash."""
    batch.validate(full=True)
    return batch


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


class ParquetFile:
    """The columns of a parquet file, in batches of rows."""

    def __init__(self, data: ByteSource) -> None:
        self.place = data.place
        self._path = cast(Path, data.path)  # parquet cannot be streamed
        head = data.head(16)
        if not head.startswith(PARQUET):
            raise wrong_kind(self.place, PARQUET_KIND, head)
        with self._open() as file:
            self.schema: pa.Schema = file.schema_arrow
            self.rows: int = file.metadata.num_rows
            ends = _group_ends(file)
        # The first row of each row group: pages are decoded from there, not from before.
        self.starts: tuple[int, ...] = (0,)
        if ends and ends[-1] == self.rows:
            self.starts = tuple(sorted({0, *ends[:-1]} - {ends[-1]}))

    def batches(
        self, columns: list[str] | None, rows: int, start: int = 0, stop: int | None = None
    ) -> Iterator["pa.RecordBatch"]:
        """Batches of at most `rows` rows, from one start of a row group to another."""
        groups = None
        with self._open() as file:
            if start or stop is not None:
                ends = _group_ends(file)
                last = ends[-1] if stop is None else stop
                groups = [i for i, end in enumerate(ends) if start < end <= last]
            yield from file.iter_batches(
                batch_size=rows, row_groups=groups, columns=columns, use_threads=False
            )

    @contextmanager
    def _open(self) -> Generator["pq.ParquetFile"]:
        import pyarrow.parquet as pq

        # Mapped and without pre_buffer, pages are decoded one by one where they are. Read
        # through a buffer, a page that claims 2 GB would be allocated 2 GB.
        with (
            border(self.place, PARQUET_KIND),
            pq.ParquetFile(self._path, memory_map=True, pre_buffer=False) as file,
        ):
            yield file


def _group_ends(file: "pq.ParquetFile") -> list[int]:
    """The row after each row group."""
    groups = range(file.metadata.num_row_groups)
    return list(accumulate(file.metadata.row_group(i).num_rows for i in groups))


def open_parquet(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of the vector column, or columns, of a parquet file."""
    file = ParquetFile(data)
    table = BatchTable(
        data.name,
        data.place,
        PARQUET_KIND,
        file.schema,
        file.rows,
        file.batches,
        lambda columns: file.batches(columns, 64),
        data.stamp,
        starts=file.starts,
    )
    return table_source(table, request)
