"""Labels: the document, id and text that come along with each row."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.border import shown
from isoscope.types import Array, Chunk

Role = str  # one of these three
ROLES: tuple[Role, ...] = ("document", "id", "text")
FIELDS: dict[Role, str] = {"document": "documents", "id": "ids", "text": "texts"}  # of Chunk
DOCUMENTS_PER_CHUNK = 1 << 14  # where they are read without their vectors


def labelled(values: dict[Role, Any], place: str) -> dict[str, Any]:
    """The keyword arguments of a chunk for labels by role, None where there are none."""
    return {
        FIELDS[role]: as_documents(given, place) if role == "document" else as_strings(given)
        for role, given in values.items()
        if given is not None
    }


def documents_alone(values: Array, name: str, place: str) -> Iterator[Chunk]:
    """Documents without their vectors, as chunks of width 0."""
    for start in range(0, len(values), DOCUMENTS_PER_CHUNK):
        some = as_documents(np.array(values[start : start + DOCUMENTS_PER_CHUNK]), place)
        yield Chunk(np.empty((len(some), 0)), name, start, some, place=place)


def as_documents(values: Any, place: str) -> Array:
    """Document ids as an array of integers, or of Python strings."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return values
    listed = _listed(values)
    kinds = {type(each) for each in listed}
    if kinds == {int}:
        return _integers(listed)
    if not kinds <= {str, int, np.str_}:
        other = sorted(kind.__name__ for kind in kinds - {str, int, np.str_})
        raise labels_kind("document", place, " and ".join(other))
    # Not fixed-width strings: one long id would blow up all the others.
    return _objects(str(each) for each in listed)


def as_strings(values: Any) -> list[str]:
    """Ids or texts as strings; nothing becomes the empty string."""
    return ["" if each is None else str(each) for each in _listed(values)]


def labels_kind(role: str, place: str, got: str) -> SourceError:
    """Return the error for labels that are neither strings nor integers."""
    return SourceError(
        f"expected strings or integers as {role}s of {place}, got {shown(got)}",
        hint=f"choose another {role} column, or convert it to strings",
        slug="labels-kind",
    )


def labels_length(role: str, place: str, expected: int, got: int) -> SourceError:
    """Return the error for labels that are not one a row."""
    return SourceError(
        f"expected {expected} {role}s, one for each row of {place}, got {got}",
        hint=f"give one {role} a row, in the same order",
        slug="labels-length",
    )


def short_of_labels(role: str, place: str, row: int) -> SourceError:
    """Return the error for a row that has no label beside it."""
    return SourceError(
        f"expected one {role} for each row of {place}, got none for row {row}",
        hint=f"give one {role} a row, in the same order",
        slug="labels-length",
    )


def _listed(values: Any) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        listed = values.tolist()
        return [_decoded(each) for each in listed] if values.dtype.kind == "S" else listed
    return values if isinstance(values, list) else list(values)


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _integers(values: Sequence[int]) -> Array:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:  # beyond 64 bits they are names, not numbers
        return _objects(str(each) for each in values)


def _objects(values: Iterable[str]) -> Array:
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array
