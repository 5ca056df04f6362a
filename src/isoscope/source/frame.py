"""Data frames and their columns: pandas, polars, pyarrow, known by what they can do."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from isoscope.source.batch import Converter, first_width
from isoscope.source.border import border
from isoscope.source.columns import not_a_vector
from isoscope.source.fingerprint import of_parts, spread
from isoscope.source.schema import layout
from isoscope.source.shape import no_rows
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Chunk

KIND = "vectors"
COLUMN = "column"  # the name of a column that comes without its frame
Batches = Callable[[int, int, int, list[str]], Iterator[Any]]  # start, end, at most, columns


def is_frame(value: Any) -> bool:
    """Whether a value is a table, or a column of one."""
    arrow = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return hasattr(value, "iloc") or arrow


def open_frame(frame: Any, wanted: Wanted, name: str = "rows") -> Source:
    """The rows of a data frame's vector column or columns, converted chunk by chunk."""
    place = f"the {type(frame).__name__}"
    if _is_column(frame):
        wanted = replace(wanted, column=COLUMN)
    with border(place, KIND):
        schema, n, batches = _pandas(frame) if hasattr(frame, "iloc") else _arrow(frame)
        if n == 0:
            raise no_rows(place)
        plan = layout(schema, wanted, place)
        if _is_column(frame) and not plan.listed:
            raise not_a_vector(place, COLUMN, str(schema.field(COLUMN).type))
        some = batches(0, n, 64, plan.names)
        d = plan.width or first_width(some, plan.vector[0], place)
    converter = Converter(plan, d, name, place, wanted.skip_bad)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        start = 0
        with border(place, KIND):
            for batch in batches(0, n, limit, plan.names):
                yield converter.chunk(batch, start, tally)
                start += len(batch)

    def stamp() -> str:
        lenient = replace(converter, skip_bad=True)
        parts = [f"{n} {d} {plan.dtype}".encode()]
        for at in spread(n, 1):
            for batch in batches(at, at + 1, 1, plan.names):
                parts.append(lenient.chunk(batch, at, Tally()).rows.tobytes())
        return of_parts(parts, ",".join(plan.vector))

    return Source(
        name, d, n, True, plan.dtype, place, read, stamp,
        has_documents="document" in plan.labels, drops=wanted.skip_bad, live=True,
    )  # fmt: skip


def _is_column(frame: Any) -> bool:
    return not hasattr(frame, "columns") and not hasattr(frame, "schema")


def _pandas(frame: Any) -> tuple[Any, int, Batches]:
    """A pandas frame: slices are turned into Arrow one after another, never the whole."""
    import pyarrow as pa

    table = frame.to_frame(COLUMN) if _is_column(frame) else frame
    names = [str(each) for each in table.columns]

    def converted(column: int, start: int, end: int) -> Any:
        return pa.array(table.iloc[start:end, column], from_pandas=True)

    def kind(column: int) -> Any:
        try:
            return converted(column, 0, 64).type
        except (pa.ArrowException, ValueError, TypeError):
            return pa.null()  # no vector, and in nobody's way unless asked for

    schema = pa.schema([(name, kind(i)) for i, name in enumerate(names)])

    def batches(start: int, end: int, limit: int, columns: list[str]) -> Iterator[Any]:
        for at in range(start, end, limit):
            stop = min(at + limit, end)
            arrays = [
                _whole(converted(names.index(each), at, stop), schema.field(each).type)
                for each in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=columns)

    return schema, len(table), batches


def _whole(array: Any, kind: Any) -> Any:
    """One array of what pandas keeps in pieces; a piece without values has no type."""
    whole = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    return whole.cast(kind) if str(whole.type) == "null" else whole


def _arrow(frame: Any) -> tuple[Any, int, Batches]:
    """Anything that speaks the Arrow C interface, without a copy."""
    import pyarrow as pa

    if not _is_column(frame):
        table = pa.table(frame)
    elif hasattr(frame, "__arrow_c_stream__"):
        table = pa.table({COLUMN: pa.chunked_array(frame)})
    else:
        table = pa.table({COLUMN: pa.array(frame)})

    def batches(start: int, end: int, limit: int, columns: list[str]) -> Iterator[Any]:
        piece = table.select(columns).slice(start, end - start)
        return iter(piece.to_batches(max_chunksize=limit))

    return table.schema, len(table), batches
