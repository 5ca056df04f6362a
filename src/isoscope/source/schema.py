"""Which columns of an Arrow schema are read, and what is known of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from isoscope.source.columns import (
    labels_exist,
    matching,
    no_vectors,
    not_a_vector,
    the_only,
)
from isoscope.source.labels import ROLES, Role, labels_kind
from isoscope.source.shape import width
from isoscope.source.source import Wanted


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns are read, and whether one of them holds the whole vector."""

    vector: tuple[str, ...]
    listed: bool
    dtype: str
    width: int | None  # None: known once the first list has been seen
    labels: dict[Role, str]

    @property
    def names(self) -> list[str]:
        """All columns that have to be read, each once."""
        return list(dict.fromkeys([*self.vector, *self.labels.values()]))


def layout(schema: Any, wanted: Wanted, place: str) -> Layout:
    """Choose the columns of a schema."""
    types = {field.name: _storage(field.type) for field in schema}
    labels_exist(wanted, list(types))
    labels: dict[Role, str] = {
        role: name for role in ROLES if (name := getattr(wanted, role)) is not None
    }
    if "document" in labels:
        _documents_kind(types[labels["document"]], place)
    chosen = _chosen(types, wanted, place)
    if len(chosen) == 1 and is_list(types[chosen[0]]):
        kind = types[chosen[0]]
        dtype = number(kind.value_type)
        if dtype is None:
            raise not_a_vector(place, chosen[0], str(kind))
        size = getattr(kind, "list_size", None)
        d = None if size is None else width(size, place)
        return Layout((chosen[0],), True, dtype, d, labels)
    numbers = [number(types[name]) for name in chosen]
    for name, dtype in zip(chosen, numbers, strict=True):
        if dtype is None:
            raise not_a_vector(place, name, str(types[name]))
    common = np.result_type(*[dtype for dtype in numbers if dtype is not None])
    return Layout(tuple(chosen), False, common.name, width(len(chosen), place), labels)


def _chosen(types: dict[str, Any], wanted: Wanted, place: str) -> list[str]:
    if wanted.column is not None:
        return matching(wanted.column, list(types))
    free = {name: kind for name, kind in types.items() if name not in wanted.labels}
    lists = [name for name, kind in free.items() if is_list(kind) and number(kind.value_type)]
    if lists:
        return [the_only(lists, place)]
    floats = [name for name, kind in free.items() if (number(kind) or "").startswith("float")]
    if not floats:
        raise no_vectors(place, [f"{name} ({kind})" for name, kind in types.items()])
    return floats


def is_list(kind: Any) -> bool:
    """Whether a column of this type holds one list a row."""
    import pyarrow.types as types

    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def number(kind: Any) -> str | None:
    """The NumPy name of a type of numbers, None for any other type."""
    import pyarrow.types as types

    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype()).name
    return None


def _storage(kind: Any) -> Any:
    """The type beneath an extension type, such as a tensor of fixed shape."""
    shape = getattr(kind, "shape", None)
    if shape is not None and len(shape) != 1:
        return kind  # a matrix a row is not a vector
    return getattr(kind, "storage_type", kind)


def _documents_kind(kind: Any, place: str) -> None:
    import pyarrow.types as types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    text = types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner)
    if not (text or types.is_integer(inner)):
        raise labels_kind("document", place, str(kind))
