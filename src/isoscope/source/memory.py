"""Vectors in memory: NumPy, torch on any device, lists of rows, and data frames.

Frames of pandas, polars and pyarrow, and their columns, are recognised by what they can do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import numpy as np

from isoscope.errors import RowError, SourceError
from isoscope.source.bytes import of_parts, spread
from isoscope.source.columns import not_a_vector
from isoscope.source.file_errors import border
from isoscope.source.npy import refuse_column
from isoscope.source.record_batch import BatchTable, is_list, storage_type, table_source
from isoscope.source.row_source import (
    PassCounts,
    RowSource,
    VectorRequest,
    check_matrix,
    check_numeric,
    no_rows,
    plain_rows,
)
from isoscope.types import Array, Chunk

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "vectors"
ANY_SIZE = 1e18  # bytes per chunk: they are in memory already
COLUMN = "column"  # the name of a column that comes without its frame
# The schema, the number of rows, and batches of (start, end, limit, columns).
Opened: TypeAlias = (
    "tuple[pa.Schema, int, Callable[[int, int, int, list[str]], Iterator[pa.RecordBatch]]]"
)
SAMPLE = 1024  # numbers of a row that enter the fingerprint
Selection: TypeAlias = slice | Array  # a range of rows, or their indices
Rows: TypeAlias = tuple[int, int, str, Callable[[Selection], Array]]  # n, d, type, take


def open_array(vectors: object, request: VectorRequest, name: str = "rows") -> RowSource:
    """The rows of an array, a tensor or a sequence of rows, converted chunk by chunk."""
    place = f"the {_describe(vectors)}"
    refuse_column(request, place)
    if is_tensor(vectors):
        n, d, dtype, take = _tensor_rows(vectors, place)
    elif _is_array(vectors):
        n, d, dtype, take = _array_rows(vectors, place)
    else:
        n, d, dtype, take = _sequence_rows(vectors, place)

    def read(
        limit: int, _counts: PassCounts, _start: int, _stop: int | None
    ) -> Iterator[Chunk]:
        for at in range(0, n, limit):
            yield Chunk(plain_rows(take(slice(at, at + limit))), name, at, place=place)

    def stamp() -> str:
        sample = plain_rows(take(np.array(spread(n, 1)))[:, :SAMPLE])
        return of_parts([f"{n} {d} {dtype}", sample.tobytes()])

    return RowSource(
        name=name,
        width=d,
        rows=n,
        rereadable=True,
        dtype=dtype,
        place=place,
        read=read,
        stamp=stamp,
        live=True,
    )


def is_tensor(value: object) -> bool:
    """Whether a value has the methods of a torch tensor."""
    return hasattr(value, "detach") and hasattr(value, "cpu")


def _is_array(value: object) -> TypeGuard[Array]:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return False
    array = cast(Array, value)
    return str(array.dtype) != "object" or len(array.shape) != 1


def _array_rows(array: Array, place: str) -> Rows:
    if np.ma.is_masked(array):
        raise SourceError(
            f"expected real numbers in {place}, got masked ones",
            hint="fill them: rows.filled(np.nan), then skip_bad=True drops those rows",
            slug="masked",
        )
    shape = tuple(int(each) for each in array.shape)
    dtype = np.asarray(array[:0] if shape else array).dtype
    check_numeric(dtype, place)
    n, d = check_matrix(shape, place)
    return n, d, dtype.name, lambda some: np.asarray(array[some])


def _tensor_rows(tensor: Any, place: str) -> Rows:
    """The rows of a torch tensor, known by its methods: torch itself is not imported."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    native = dtype.startswith(("bool", "int", "uint", "float16", "float32", "float64"))
    if dtype.startswith("complex"):
        check_numeric(np.dtype(dtype), place)
    n, d = check_matrix(tuple(int(each) for each in tensor.shape), place)

    def take(some: Selection) -> Array:
        try:
            rows = tensor.detach()[some]
            if not native:  # bfloat16, float8: float32 holds them exactly
                rows = rows.float()
            return rows.cpu().numpy()
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise SourceError(
                f"expected a dense tensor of numbers, got {dtype} on {tensor.device}",
                hint="convert it: tensor.to_dense().float().cpu()",
                slug="tensor-kind",
            ) from error

    take(slice(0, 1))
    return n, d, dtype if dtype == "bfloat16" or native else "float32", take


def _sequence_rows(rows: object, place: str) -> Rows:
    """A list of rows, or a NumPy array of objects each of which is a row."""
    if not isinstance(rows, Sequence | np.ndarray) or isinstance(rows, str | bytes):
        raise SourceError(
            f"expected a path, an array, a tensor or a data frame, got {_describe(rows)}",
            hint="pass an array of shape (rows, width)",
            slug="vectors-kind",
        )
    listed = cast(Sequence[object], rows)
    if len(listed) == 0:
        raise no_rows(place)
    first = _stack(listed[:1], 0, None, place)
    check_numeric(first.dtype, place)
    n, d = check_matrix((len(listed), *first.shape[1:]), place)

    def take(some: Selection) -> Array:
        if isinstance(some, slice):
            return _stack(listed[some], int(some.start or 0), d, place)
        return _stack([listed[i] for i in some], 0, d, place)

    return n, d, first.dtype.name, take


def _stack(rows: Sequence[object], start: int, d: int | None, place: str) -> Array:
    try:
        arrays = [np.asarray(row) for row in rows]
    except Exception as error:  # whatever the rows are: their __array__ may raise anything
        raise SourceError(
            f"expected rows of numbers in {place}, got {_describe(rows[0])}",
            hint="stack them into one array first",
            slug="vectors-kind",
        ) from error
    for i, row in enumerate(arrays):
        if row.dtype.kind not in "fiub":
            check_numeric(row.dtype, f"row {start + i} of {place}")
        if d is not None and row.shape != (d,):
            raise RowError(
                f"expected {d} numbers in row {start + i} of {place} (rows count from 0), "
                f"got shape {row.shape}",
                hint="make all rows of one width",
                slug="row-not-a-vector",
            )
    return np.stack(arrays)


def _describe(value: object) -> str:
    kind = type(value)
    return {"ndarray": "array", "Tensor": "tensor"}.get(kind.__name__, kind.__name__)


def is_frame(value: object) -> bool:
    """Whether a value is a table, or a column of one."""
    return any(
        hasattr(value, each) for each in ("iloc", "__arrow_c_stream__", "__arrow_c_array__")
    )


def open_frame(frame: Any, request: VectorRequest, name: str = "rows") -> RowSource:
    """The rows of a data frame's vector column or columns, converted chunk by chunk."""
    place = f"the {type(frame).__name__}"
    with border(place, KIND):
        open_table = _open_pandas if hasattr(frame, "iloc") else _open_arrow
        schema, n, batches = open_table(frame)
    if _is_column(frame):
        request = replace(request, column=COLUMN)
        kind = schema.field(COLUMN).type
        if n and not is_list(storage_type(kind)):
            raise not_a_vector(place, COLUMN, str(kind))

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
        name,
        place,
        KIND,
        schema,
        n,
        lambda columns, limit, _start, _stop: batches(0, n, limit, columns),
        lambda columns: batches(0, n, 64, columns),
        stamp,
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
