"""Vectors in record batches of Arrow: which columns, and how batches become chunks."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import RowError, SourceError
from isoscope.source.columns import (
    DOCUMENTS_PER_CHUNK,
    LabelValues,
    add_labels,
    check_labels,
    labels_kind,
    match_columns,
    no_vectors,
    not_a_vector,
    only_column,
)
from isoscope.source.file_errors import border
from isoscope.source.row_source import (
    DECODED_BYTES,
    PassCounts,
    Role,
    RowSource,
    VectorRequest,
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
    # The first batches of some columns, also of a stream, which is read again afterwards.
    sample: Callable[[list[str]], Iterator["pa.RecordBatch"]]
    stamp: Callable[[str], str]  # the fingerprint, from the columns that are read
    starts: tuple[int, ...] = (0,)  # rows at which reading may begin
    rereadable: bool = True

    def pieces(
        self, names: list[str], limit: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, "pa.RecordBatch", bool]]:
        """Yield the ordinal of the first row, some rows, and whether a batch has more."""
        with border(self.place, self.kind):
            batches = self.batches(names, limit, start, stop)
            while (batch := next(batches, None)) is not None:
                for at in range(0, len(batch), limit):
                    piece = batch.slice(at, limit)
                    yield start, piece, len(piece) < len(batch)
                    start += len(piece)
                    del piece
                del batch  # before the next one: both may be unpacked, and large


@dataclass(frozen=True, slots=True)
class VectorColumns:
    """Which columns are read, and how batches of them become chunks.

    A row that is not a vector is an error, or dropped.
    """

    name: str  # of the source
    place: str
    skip_bad: bool
    vector: tuple[str, ...]
    listed: bool  # whether one column holds the whole vector
    dtype: str
    width: int  # 0: known once the first list has been read
    labels: dict[Role, str]

    @property
    def names(self) -> list[str]:
        """All columns that have to be read, each once."""
        return list(dict.fromkeys([*self.vector, *self.labels.values()]))

    def chunk(self, batch: "pa.RecordBatch", start: int, counts: PassCounts) -> Chunk:
        """The rows of one batch, the first of which has the ordinal `start`."""
        ordinals = None
        good = self._usable_rows(batch, start)
        if good is not None:
            counts.skipped += len(batch) - len(good)
            batch = batch.take(good)
            ordinals = start + good
        labels = {
            role: self._label_values(batch.column(name), role)
            for role, name in self.labels.items()
        }
        rows = self._rows(self._arrays(batch), len(batch))
        chunk = Chunk(rows, self.name, start, place=self.place, ordinals=ordinals)
        return add_labels(chunk, labels)

    def documents(self, batch: "pa.RecordBatch", start: int) -> Chunk:
        """The documents of one batch without its vectors; rows without one are skipped."""
        column = batch.column(self.labels["document"])
        kept = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        values = self._label_values(column.drop_null(), "document")
        rows = np.empty((len(kept), 0))
        chunk = Chunk(rows, self.name, start, place=self.place, ordinals=start + kept)
        return add_labels(chunk, {"document": values})

    def _arrays(self, batch: "pa.RecordBatch") -> "list[pa.Array]":
        return [_storage(batch.column(name)) for name in self.vector]

    def _rows(self, arrays: "list[pa.Array]", n: int) -> Array:
        if self.listed:
            values = arrays[0].flatten().to_numpy(zero_copy_only=False)
            return plain_rows(values.reshape(n, self.width))
        dtype = np.result_type(*[number_type(array.type) for array in arrays])
        rows = np.empty((n, self.width), dtype=dtype)
        for i, array in enumerate(arrays):
            rows[:, i] = array.to_numpy(zero_copy_only=False)
        return plain_rows(rows)

    def _usable_rows(self, batch: "pa.RecordBatch", start: int) -> Array | None:
        """Indices of the usable rows, or None if all are."""
        arrays = self._arrays(batch)
        document = self.labels.get("document")
        required = [] if document is None else [batch.column(document)]
        problems: dict[int, str] = {}
        for column in [*arrays, *required]:
            for index in _null_indices(column).tolist() if column.null_count else ():
                problems.setdefault(index, "nothing (null)")
        if self.listed:
            self._check_lists(arrays[0], problems)
        if not problems:
            return None
        if not self.skip_bad:
            first = min(problems)
            raise RowError(
                f"expected {self.width} numbers in row {start + first} of {self.place} "
                f"(rows count from 0), got {problems[first]}",
                hint="--skip-bad drops and counts such rows",
                slug="row-not-a-vector",
            )
        return np.array([i for i in range(len(batch)) if i not in problems], dtype=np.int64)

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


def table_source(
    table: BatchTable, request: VectorRequest, budget: float = DECODED_BYTES
) -> RowSource:
    """The rows of a table; chunks keep within the budget of bytes."""
    with border(table.place, table.kind):
        columns = vector_columns(table.schema, request, table.name, table.place)
        if table.rows == 0:
            raise no_rows(table.place)
        if not columns.width:
            width = first_width(table.sample(columns.names), columns.vector[0], table.place)
            columns = replace(columns, width=width)
    most = rows_per_chunk(columns.width, columns.dtype, budget)

    def read(limit: int, counts: PassCounts, start: int, stop: int | None) -> Iterator[Chunk]:
        at = None
        for at, piece, shared in table.pieces(columns.names, min(limit, most), start, stop):
            chunk = columns.chunk(piece, at, counts)
            del piece
            yield _own(chunk) if shared else chunk
            del chunk
        if at is None:
            raise no_rows(table.place)

    def documents() -> Iterator[Chunk]:
        for at, piece, _ in table.pieces([columns.labels["document"]], DOCUMENTS_PER_CHUNK):
            yield columns.documents(piece, at)

    has_documents = "document" in columns.labels
    return RowSource(
        name=table.name,
        width=columns.width,
        rows=table.rows,
        rereadable=table.rereadable,
        dtype=columns.dtype,
        place=table.place,
        read=read,
        stamp=lambda: table.stamp(",".join(columns.vector)),
        has_documents=has_documents,
        drops=request.skip_bad,
        starts=table.starts,
        documents=documents if has_documents else None,
    )


def vector_columns(
    schema: "pa.Schema", request: VectorRequest, name: str, place: str
) -> VectorColumns:
    """Choose the columns of a schema."""
    types = {field.name: storage_type(field.type) for field in schema}
    check_labels(request, list(types))
    if request.document is not None:
        _check_document_type(types[request.document], place)
    vector = _choose_columns(types, request, place)
    first = types[vector[0]]
    listed = len(vector) == 1 and is_list(first)
    numbers: list[str] = []
    for each in vector:
        dtype = number_type(first.value_type if listed else types[each])
        if dtype is None:
            raise not_a_vector(place, each, str(types[each]))
        numbers.append(dtype)
    width = getattr(first, "list_size", None) if listed else len(vector)
    return VectorColumns(
        name,
        place,
        request.skip_bad,
        tuple(vector),
        listed,
        np.result_type(*numbers).name,
        0 if width is None else check_width(width, place),
        request.roles,
    )


def first_width(batches: Iterator["pa.RecordBatch"], column: str, place: str) -> int:
    """Length of the first list that is not null, for columns whose type does not say."""
    import pyarrow.compute as pc

    for batch in batches:
        # made at run time, so no type checker knows it
        lengths = pc.list_value_length(_storage(batch.column(column))).drop_null()  # pyright: ignore[reportAttributeAccessIssue]
        if len(lengths):
            return check_width(lengths[0].as_py(), place)
    raise no_rows(place)


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
    free = {name: kind for name, kind in types.items() if name not in request.roles.values()}
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
