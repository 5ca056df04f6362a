"""Data frames and their columns: pandas, polars, pyarrow, recognised by what they can do."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from isoscope.source.border import border
from isoscope.source.columns import not_a_vector
from isoscope.source.fingerprint import of_parts, spread
from isoscope.source.record_batch import BatchTable, is_list, storage_type, table_source
from isoscope.source.row_source import PassCounts, RowSource, VectorRequest

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "vectors"
ANY_SIZE = 1e18  # bytes per chunk: they are in memory already
COLUMN = "column"  # the name of a column that comes without its frame


Batches: TypeAlias = "Callable[[int, int, int, list[str]], Iterator[pa.RecordBatch]]"
Opened: TypeAlias = (
    "tuple[pa.Schema, int, Batches]"  # schema, rows, (start, end, limit, columns)
)


def is_frame(value: object) -> bool:
    """Whether a value is a table, or a column of one."""
    marks = ("iloc", "__arrow_c_stream__", "__arrow_c_array__")
    return any(hasattr(value, each) for each in marks)


def open_frame(frame: Any, request: VectorRequest, name: str = "rows") -> RowSource:
    """The rows of a data frame's vector column or columns, converted chunk by chunk."""
    place = f"the {type(frame).__name__}"
    with border(place, KIND):
        opened = _open_pandas(frame) if hasattr(frame, "iloc") else _open_arrow(frame)
    schema, n, batches = opened
    if _is_column(frame):
        request = replace(request, column=COLUMN)
        kind = schema.field(COLUMN).type
        if n and not is_list(storage_type(kind)):
            raise not_a_vector(place, COLUMN, str(kind))

    def read(
        columns: list[str], limit: int, _start: int, _stop: int | None
    ) -> Iterator["pa.RecordBatch"]:
        return batches(0, n, limit, columns)

    def read_sample(
        columns: list[str], _limit: int, _start: int, _stop: int | None
    ) -> Iterator["pa.RecordBatch"]:
        return chain.from_iterable(batches(at, at + 1, 1, columns) for at in spread(n, 1))

    def stamp(columns: str) -> str:
        some = replace(table, batches=read_sample)
        lenient = table_source(some, replace(request, skip_bad=True), ANY_SIZE)
        rows = [chunk.rows.tobytes() for chunk in lenient.read(1, PassCounts(), 0, None)]
        return of_parts([f"{n} {source.width} {source.dtype}".encode(), *rows], columns)

    table = BatchTable(
        name, place, KIND, schema, n, read, lambda names: batches(0, n, 64, names), stamp
    )
    source = replace(table_source(table, request, ANY_SIZE), documents=None, live=True)
    return source


def _is_column(frame: object) -> bool:
    return not hasattr(frame, "columns") and not hasattr(frame, "schema")


def _open_pandas(frame: Any) -> Opened:
    """A pandas frame: slices are turned into Arrow one after another, never the whole."""
    import pyarrow as pa

    table = frame.to_frame(COLUMN) if _is_column(frame) else frame
    names = [str(each) for each in table.columns]

    def convert(column: int, start: int, end: int) -> "pa.Array | pa.ChunkedArray":
        return pa.array(table.iloc[slice(start, end), column], from_pandas=True)

    def kind(column: int) -> "pa.DataType":
        try:
            return convert(column, 0, 64).type
        except (pa.ArrowException, ValueError, TypeError):
            return pa.null()  # not a vector, and an error only if it is named

    schema = pa.schema([(name, kind(i)) for i, name in enumerate(names)])

    def batches(
        start: int, end: int, limit: int, columns: list[str]
    ) -> Iterator["pa.RecordBatch"]:
        for at in range(start, end, limit):
            stop = min(at + limit, end)
            arrays = [
                _combine(convert(names.index(each), at, stop), schema.field(each).type)
                for each in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=columns)

    return schema, len(table), batches


def _combine(array: "pa.Array | pa.ChunkedArray", kind: "pa.DataType") -> "pa.Array":
    """One array of what pandas stores in pieces; a piece without values has no type."""
    whole = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    return whole.cast(kind) if str(whole.type) == "null" else whole


def _open_arrow(frame: object) -> Opened:
    """Anything that offers the Arrow C interface, without a copy."""
    import pyarrow as pa

    if not _is_column(frame):
        table = pa.table(frame)
    elif hasattr(frame, "__arrow_c_stream__"):
        table = pa.table({COLUMN: pa.chunked_array(frame)})
    else:
        table = pa.table({COLUMN: pa.array(frame)})

    def batches(
        start: int, end: int, limit: int, columns: list[str]
    ) -> Iterator["pa.RecordBatch"]:
        piece = table.select(columns).slice(start, end - start)
        return iter(piece.to_batches(max_chunksize=limit))

    return table.schema, len(table), batches
