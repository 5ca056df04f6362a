"""Columns and arrays: which of them hold the vectors, and the labels that accompany rows.

Labels are the document, id and text of each row, inside a file or apart from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from isoscope.errors import SourceError
from isoscope.registry import unknown
from isoscope.source.bytes import open_bytes
from isoscope.source.file_errors import printable
from isoscope.source.npy import check_size, map_array, read_header
from isoscope.source.row_source import PassCounts, Role, RowSource, VectorRequest, ordinals_of
from isoscope.types import Array, Chunk

DOCUMENTS_PER_CHUNK = 1 << 14  # where they are read without their vectors
LabelValues: TypeAlias = Array | Sequence[object]
IDS = {
    "id",
    "ids",
    "idx",
    "index",
    "row_id",
    "doc",
    "doc_id",
    "document",
    "document_id",
    "label",
}
PREFERRED = ("embedding", "embeddings", "vector", "vectors", "features")


def match_columns(pattern: str, names: Sequence[str]) -> list[str]:
    """Columns that a name, several names with commas, or patterns such as `e*` stand for."""
    if pattern in names:
        return [pattern]
    columns: dict[str, None] = {}
    for piece in (each.strip() for each in pattern.split(",")):
        found = [name for name in names if name == piece or fnmatchcase(name, piece)]
        if not found:
            raise unknown("column", piece, names)
        columns.update(dict.fromkeys(found))
    return list(columns)


def only_column(lists: Sequence[str], place: str) -> str:
    """The one column that holds lists, or the one with a name that says so."""
    if len(lists) == 1:
        return lists[0]
    for name in PREFERRED:
        if name in lists:
            return name
    raise SourceError(
        f"expected one column of vectors in {place}, got {len(lists)}",
        hint=f"name one with --column: {', '.join(map(printable, lists[:12]))}",
        slug="which-column",
    )


def refuse_ids(names: Sequence[str], place: str) -> None:
    """Refuse to take a column that numbers or names the rows for a part of their vectors."""
    found = [name for name in names if name.strip().lower() in IDS]
    if found and len(names) > len(found):
        raise SourceError(
            f"expected columns of vectors in {place}, got {found[0]!r} among {len(names)} "
            "columns of numbers",
            hint="choose the columns of the vectors with --column, such as --column 'dim_*'; "
            f"or say what it is: --id {printable(found[0])}",
            slug="which-column",
        )


def check_labels(request: VectorRequest, names: Sequence[str]) -> None:
    """Refuse the name of a label column that does not exist."""
    for name in request.roles.values():
        if name not in names:
            raise unknown("column", name, names)


def no_vectors(place: str, found: Sequence[str]) -> SourceError:
    """Return the error for a table without a column that could be a vector."""
    listed = ", ".join(map(printable, found[:12])) + (", ..." if len(found) > 12 else "")
    return SourceError(
        f"expected columns of numbers in {place}, got none that could be a vector",
        hint=f"name one with --column; the columns are: {listed or '(none)'}",
        slug="no-vector-column",
    )


def not_a_vector(place: str, column: str, got: str) -> SourceError:
    """Return the error for a column that was named and holds something else."""
    return SourceError(
        f"expected lists of numbers in column {column!r} of {place}, got {printable(got)}",
        hint="choose another column, or convert it to lists of floats",
        slug="column-kind",
    )


def add_labels(chunk: Chunk, labels: Mapping[Role, LabelValues]) -> Chunk:
    """A chunk with the labels of each role."""
    found: dict[str, Any] = {}
    for role, values in labels.items():
        if role == "document":
            found["documents"] = as_documents(values, chunk.place)
        else:
            found[f"{role}s"] = as_strings(values)
    return replace(chunk, **found)


def document_chunks(values: Array, name: str, place: str) -> Iterator[Chunk]:
    """Documents without their vectors, as chunks of width 0."""
    for start in range(0, len(values), DOCUMENTS_PER_CHUNK):
        some = np.array(values[start : start + DOCUMENTS_PER_CHUNK])
        chunk = Chunk(np.empty((len(some), 0)), name, start, place=place)
        yield add_labels(chunk, {"document": some})


def as_documents(values: LabelValues, place: str) -> Array:
    """Document ids as an array of integers, or of Python strings."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return values
    listed = _as_list(values)
    kinds = {type(each) for each in listed}
    if kinds == {int}:
        try:
            return np.array(listed, dtype=np.int64)
        except OverflowError:  # beyond 64 bits they are names, not numbers
            pass
    if not kinds <= {str, int, np.str_}:
        other = sorted(kind.__name__ for kind in kinds - {str, int, np.str_})
        raise labels_kind("document", place, " and ".join(other))
    # Not fixed-width strings: one long id would widen all the others.
    return _object_array([str(each) for each in listed])


def as_strings(values: LabelValues) -> list[str]:
    """Ids or texts as strings; a missing one becomes the empty string."""
    return ["" if each is None else str(each) for each in _as_list(values)]


def labels_kind(role: str, place: str, got: str) -> SourceError:
    """Return the error for labels that are neither strings nor integers."""
    return SourceError(
        f"expected strings or integers as {role}s of {place}, got {printable(got)}",
        hint=f"choose another {role} column, or convert it to strings",
        slug="labels-kind",
    )


def labels_length(role: str, place: str, expected: int, got: int) -> SourceError:
    """Return the error for a number of labels that differs from the number of rows."""
    return SourceError(
        f"expected {expected} {role}s, one for each row of {place}, got {got}",
        hint=f"pass one {role} per row, in the same order",
        slug="labels-length",
    )


def attach_labels(source: RowSource, labels: Mapping[Role, object]) -> RowSource:
    """A source whose chunks carry labels from an npy file of their own, or a sequence.

    Labels of a folder are divided among its files. Their number is compared with that of
    the rows here where the rows are counted, and again for whatever is read, whether that
    is the whole source or a segment of it.
    """
    if not labels:
        return source
    if any(part.rows is None for part in source.parts):
        raise SourceError(
            f"cannot match labels with the rows of {source.place}, which it does not count",
            hint="put the labels into columns of the csv or jsonl files and name those",
            slug="labels-folder",
        )
    arrays = {role: _load_labels(role, value) for role, value in labels.items()}
    for role, values in arrays.items():
        if source.rows is not None and len(values) != source.rows:
            raise labels_length(role, source.place, source.rows, len(values))
    live = source.live or not all(isinstance(value, Path) for value in labels.values())
    parts: list[RowSource] = []
    first = 0
    for part in source.parts:
        end = first + (part.rows or 0)
        own = {role: values[first:end] for role, values in arrays.items()}
        parts.append(_attach(part, own))
        first = end
    return replace(_attach(source, arrays), parts=tuple(parts), live=live)


def _attach(source: RowSource, labels: Mapping[Role, Array]) -> RowSource:
    """A source with the labels of its rows."""

    def read(limit: int, counts: PassCounts, start: int, stop: int | None) -> Iterator[Chunk]:
        skipped = counts.skipped
        count = 0
        for chunk in source.read(limit, counts, start, stop):
            at = ordinals_of(chunk)
            for role, values in labels.items():
                if len(at) and at[-1] >= len(values):
                    raise SourceError(
                        f"expected one {role} for each row of {source.place}, "
                        f"got none for row {int(at[-1])}",
                        hint=f"pass one {role} per row, in the same order",
                        slug="labels-length",
                    )
            count += len(chunk)
            yield add_labels(chunk, {role: values[at] for role, values in labels.items()})
        end = start + count + counts.skipped - skipped
        for role, values in labels.items():
            if end != (len(values) if stop is None else stop):
                raise labels_length(role, source.place, end, len(values))

    attached = replace(source, read=read, counts=PassCounts())
    if "document" not in labels:
        return attached

    def documents() -> Iterator[Chunk]:
        return document_chunks(labels["document"], source.name, source.place)

    return replace(attached, documents=documents, has_documents=True)


def _load_labels(role: Role, value: object) -> Array:
    place = "the rows"
    if isinstance(value, Path):
        place, value = str(value), _load_npy(value)
    elif hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor
        value = cast(Any, value).detach().cpu()
    if isinstance(value, list | tuple):  # fixed-width strings would be as wide as the longest
        array = _object_array(cast(Sequence[object], value))
    else:
        array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iuSUOT":
        raise labels_kind(role, place, f"an array of {array.dtype} of shape {array.shape}")
    return array


def _load_npy(path: Path) -> Array:
    data = open_bytes(path, path.stem)
    with data.open() as stream:
        header = read_header(stream, data.place)
    check_size(path, header, data.place)
    if not prod(header.shape) or not header.dtype.itemsize:
        return np.empty(header.shape, dtype=header.dtype)
    return map_array(path, header, place=data.place)[0]


def _as_list(values: LabelValues) -> Sequence[object]:
    if not isinstance(values, np.ndarray):
        return values
    listed: list[object] = values.tolist()
    if values.dtype.kind != "S":
        return listed
    return [cast(bytes, each).decode("utf-8", "replace") for each in listed]


def _object_array(values: Sequence[object]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
