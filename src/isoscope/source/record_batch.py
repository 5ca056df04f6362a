"""Vectors in record batches of Arrow: which columns, and how batches become chunks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isoscope.errors import RowError, SourceError
from isoscope.source.border import border
from isoscope.source.columns import (
    check_labels,
    match_columns,
    no_vectors,
    not_a_vector,
    only_column,
)
from isoscope.source.request import Role, VectorRequest
from isoscope.source.row_labels import (
    DOCUMENTS_PER_CHUNK,
    LabelValues,
    label_chunk,
    labels_kind,
)
from isoscope.source.row_source import PassCounts, RowSource, Seek
from isoscope.source.shape import (
    DECODED_BYTES,
    check_width,
    no_rows,
    plain_rows,
    rows_per_chunk,
)
from isoscope.types import Array, Chunk

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class BatchTable:
    """A table that is read in record batches: a parquet or arrow file, or a data frame."""

    name: str
    place: str
    kind: str  # for messages
    schema: "pa.Schema"
    rows: int | None
    # Columns, rows per batch (which a batch may exceed), first row and the row to stop at.
    # The first and last row must be in `starts`.
    batches: Callable[[list[str], int, int, int | None], Iterator["pa.RecordBatch"]]
    stamp: Callable[[str], str]  # the fingerprint, given the columns that are read
    starts: tuple[int, ...] | None = None  # rows at which reading may begin
    rereadable: bool = True
    # The same as `batches` for columns alone, from a stream that will be read again.
    sample: Callable[[list[str]], Iterator["pa.RecordBatch"]] | None = None


@dataclass(frozen=True, slots=True)
class VectorColumns:
    """Which columns are read, and whether one of them holds the whole vector."""

    vector: tuple[str, ...]
    listed: bool
    dtype: str
    width: int | None  # None: known once the first list has been read
    labels: dict[Role, str]

    @property
    def names(self) -> list[str]:
        """All columns that have to be read, each once."""
        return list(dict.fromkeys([*self.vector, *self.labels.values()]))


def table_source(
    table: BatchTable, request: VectorRequest, budget: float | None = DECODED_BYTES
) -> RowSource:
    """The rows of a table; chunks keep within the budget of bytes, if there is one."""
    with border(table.place, table.kind):
        columns = vector_columns(table.schema, request, table.place)
        if table.rows == 0:
            raise no_rows(table.place)
        sample = table.sample or (lambda names: table.batches(names, 64, 0, None))
        width = columns.width or first_width(
            sample(columns.names), columns.vector[0], table.place
        )
    converter = BatchConverter(columns, width, table.name, table.place, request.skip_bad)

    def pieces(
        names: list[str], limit: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, "pa.RecordBatch", bool]]:
        """Yield the ordinal of the first row, some rows, and whether a batch has more."""
        with border(table.place, table.kind):
            batches = table.batches(names, limit, start, stop)
            while (batch := next(batches, None)) is not None:
                for at in range(0, len(batch), limit):
                    piece = batch.slice(at, limit)
                    yield start, piece, len(piece) < len(batch)
                    start += len(piece)
                    del piece
                del batch  # before the next one: both may be unpacked, and large

    def read(
        limit: int, counts: PassCounts, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        most = limit if budget is None else rows_per_chunk(width, columns.dtype, budget)
        at = None
        for at, piece, shared in pieces(columns.names, min(limit, most), start, stop):
            chunk = converter.chunk(piece, at, counts)
            del piece
            yield _own(chunk) if shared else chunk
            del chunk
        if at is None:
            raise no_rows(table.place)

    def documents() -> Iterator[Chunk]:
        name = columns.labels["document"]
        for at, piece, _ in pieces([name], DOCUMENTS_PER_CHUNK):
            yield converter.documents(piece, at)

    has_documents = "document" in columns.labels
    return RowSource(
        name=table.name,
        width=width,
        rows=table.rows,
        rereadable=table.rereadable,
        dtype=columns.dtype,
        place=table.place,
        read=read,
        stamp=lambda: table.stamp(",".join(columns.vector)),
        has_documents=has_documents,
        drops=request.skip_bad,
        seek=None if table.starts is None else Seek(table.starts, read),
        documents=documents if has_documents else None,
    )


def vector_columns(schema: "pa.Schema", request: VectorRequest, place: str) -> VectorColumns:
    """Choose the columns of a schema."""
    types = {field.name: storage_type(field.type) for field in schema}
    check_labels(request, list(types))
    labels = request.roles
    if "document" in labels:
        _check_document_type(types[labels["document"]], place)
    names = _choose_columns(types, request, place)
    if len(names) == 1 and is_list(types[names[0]]):
        kind = types[names[0]]
        dtype = number_type(kind.value_type)
        if dtype is None:
            raise not_a_vector(place, names[0], str(kind))
        size = getattr(kind, "list_size", None)
        width = None if size is None else check_width(size, place)
        return VectorColumns((names[0],), True, dtype, width, labels)
    numbers: list[str] = []
    for name in names:
        dtype = number_type(types[name])
        if dtype is None:
            raise not_a_vector(place, name, str(types[name]))
        numbers.append(dtype)
    common = np.result_type(*numbers).name
    return VectorColumns(tuple(names), False, common, check_width(len(names), place), labels)


def first_width(batches: Iterator["pa.RecordBatch"], column: str, place: str) -> int:
    """Length of the first list that is not null, for columns whose type does not say."""
    import pyarrow.compute as pc

    for batch in batches:
        # made at run time, so no type checker knows it
        lengths = pc.list_value_length(_storage(batch.column(column))).drop_null()  # pyright: ignore[reportAttributeAccessIssue]
        if len(lengths):
            return check_width(lengths[0].as_py(), place)
    raise no_rows(place)


@dataclass(frozen=True, slots=True)
class BatchConverter:
    """Turns batches into chunks; a row that is not a vector is an error, or dropped."""

    columns: VectorColumns
    width: int
    name: str
    place: str
    skip_bad: bool

    def chunk(self, batch: "pa.RecordBatch", start: int, counts: PassCounts) -> Chunk:
        """The rows of one batch, the first of which has the ordinal `start`."""
        arrays = [_storage(batch.column(name)) for name in self.columns.vector]
        document = self.columns.labels.get("document")
        required = [] if document is None else [batch.column(document)]
        good = self._usable_rows(arrays, required, start)
        ordinals = None
        if good is not None:
            counts.skipped += len(batch) - len(good)
            batch = batch.take(good)
            arrays = [_storage(batch.column(name)) for name in self.columns.vector]
            ordinals = start + good
        labels = {
            role: self._label_values(batch.column(name), role)
            for role, name in self.columns.labels.items()
        }
        return label_chunk(self._rows(arrays, len(batch)), self, start, labels, ordinals)

    def documents(self, batch: "pa.RecordBatch", start: int) -> Chunk:
        """The documents of one batch without its vectors; rows without one are skipped."""
        column = batch.column(self.columns.labels["document"])
        kept = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        values = self._label_values(column.drop_null(), "document")
        rows = np.empty((len(kept), 0))
        return label_chunk(rows, self, start, {"document": values}, start + kept)

    def _rows(self, arrays: "list[pa.Array]", n: int) -> Array:
        if self.columns.listed:
            values = arrays[0].flatten().to_numpy(zero_copy_only=False)
            return plain_rows(values.reshape(n, self.width))
        dtype = np.result_type(*[number_type(array.type) for array in arrays])
        rows = np.empty((n, self.width), dtype=dtype)
        for i, array in enumerate(arrays):
            rows[:, i] = array.to_numpy(zero_copy_only=False)
        return plain_rows(rows)

    def _usable_rows(
        self, arrays: "list[pa.Array]", required: "list[pa.Array]", start: int
    ) -> Array | None:
        """Indices of the usable rows, or None if all are."""
        problems: dict[int, str] = {}
        for column in [*arrays, *required]:
            if column.null_count:
                for index in _null_indices(column).tolist():
                    problems.setdefault(index, "nothing (null)")
        if self.columns.listed:
            self._check_lists(arrays[0], problems)
        if not problems:
            return None
        if not self.skip_bad:
            first = min(problems)
            raise RowError(
                f"expected {self.width} numbers in row {start + first} of {self.place} "
                f"(rows count from 0), got {problems[first]}",
                hint="--skip-bad (in Python skip_bad=True) drops and counts such rows",
                slug="row-not-a-vector",
            )
        n = len(arrays[0])
        return np.array([i for i in range(n) if i not in problems], dtype=np.int64)

    def _check_lists(self, array: "pa.Array", problems: dict[int, str]) -> None:
        import pyarrow.compute as pc

        there = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        dense = array.drop_null()
        lengths = pc.list_value_length(dense).to_numpy(zero_copy_only=False)  # pyright: ignore[reportAttributeAccessIssue]
        for index in np.flatnonzero(lengths != self.width).tolist():
            problems.setdefault(int(there[index]), f"{lengths[index]}")
        values = dense.flatten()
        if values.null_count:
            parents = np.repeat(there, lengths)
            for index in np.unique(parents[_null_indices(values)]).tolist():
                problems.setdefault(index, "a null among them")

    def _label_values(self, column: "pa.Array", role: Role) -> LabelValues:
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        try:
            if role == "document" and np.issubdtype(column.type.to_pandas_dtype(), np.integer):
                return column.to_numpy(zero_copy_only=False)
            return column.to_pylist()
        except UnicodeDecodeError as error:
            raise SourceError(
                f"expected UTF-8 text as {role}s of {self.place}, got other bytes",
                hint="write the column again as UTF-8",
                slug="not-utf8",
            ) from error


def is_list(kind: "pa.DataType") -> bool:
    """Whether a column of this type holds one list per row."""
    import pyarrow.types as types

    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def number_type(kind: "pa.DataType") -> str | None:
    """The NumPy name of a type of numbers, None for any other type."""
    import pyarrow.types as types

    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype()).name
    return None


def _choose_columns(
    types: "dict[str, pa.DataType]", request: VectorRequest, place: str
) -> list[str]:
    if request.column is not None:
        return match_columns(request.column, list(types))
    free = {name: kind for name, kind in types.items() if name not in request.labels}
    lists = [
        name for name, kind in free.items() if is_list(kind) and number_type(kind.value_type)
    ]
    if lists:
        return [only_column(lists, place)]
    floats = [
        name for name, kind in free.items() if (number_type(kind) or "").startswith("float")
    ]
    if not floats:
        raise no_vectors(place, [f"{name} ({kind})" for name, kind in types.items()])
    return floats


def storage_type(kind: "pa.DataType") -> "pa.DataType":
    """The type beneath an extension type, such as a tensor of fixed shape."""
    shape = getattr(kind, "shape", None)
    if shape is not None and len(shape) != 1:
        return kind  # a matrix per row is not a vector
    return getattr(kind, "storage_type", kind)


def _check_document_type(kind: "pa.DataType", place: str) -> None:
    import pyarrow.types as types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    text = types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner)
    if not (text or types.is_integer(inner)):
        raise labels_kind("document", place, str(kind))


def _storage(array: "pa.Array") -> "pa.Array":
    return array.storage if hasattr(array, "storage") else array


def _null_indices(column: "pa.Array") -> Array:
    return np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))


def _own(chunk: Chunk) -> Chunk:
    """A chunk with arrays of its own: a view would keep the whole batch alive."""
    documents = None if chunk.documents is None else chunk.documents.copy()
    return replace(chunk, rows=chunk.rows.copy(), documents=documents)
