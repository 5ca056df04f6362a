"""parquet: read in small batches, however large its row groups are."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, cast

from isoscope.source.border import PARQUET, border, wrong_kind
from isoscope.source.bytes import ByteSource
from isoscope.source.record_batch import BatchTable, table_source
from isoscope.source.row_source import RowSource, VectorRequest

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

KIND = "a parquet file"


class ParquetFile:
    """The columns of a parquet file, in batches of rows."""

    def __init__(self, data: ByteSource) -> None:
        self.place = data.place
        self._path = cast(Path, data.path)  # parquet cannot be streamed
        head = data.head(16)
        if not head.startswith(PARQUET):
            raise wrong_kind(self.place, KIND, head)
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
            border(self.place, KIND),
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
        KIND,
        file.schema,
        file.rows,
        file.batches,
        lambda columns: file.batches(columns, 64),
        data.stamp,
        starts=file.starts,
    )
    return table_source(table, request)
