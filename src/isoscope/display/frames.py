"""Lines of records as typed columns: CSV text, pandas and polars frames.

Lists of numbers or texts stay lists. Other nested values are JSON text.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from io import StringIO
from math import isfinite
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    cast,
    runtime_checkable,
)

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.escape import plain

if TYPE_CHECKING:
    import pandas
    import polars
    from _typeshed import DataclassInstance

# A JSON value, and one record: column names to values.
Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value] | None"
Line: TypeAlias = dict[str, Value]
_FORMULA = ("=", "+", "-", "@")  # the first letters of what spreadsheets compute
Kind = Literal["text", "integer", "number", "flag", "texts", "integers", "numbers", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of CSV and of frames: its name and the type of its cells."""

    name: str
    kind: Kind = "text"
    optional: bool = False  # cells may be missing; numbers and texts always may
    joined: bool = False  # a list of texts that CSV joins by "; " instead of writing JSON


@runtime_checkable
class _Listable(Protocol):
    """An array or a number of NumPy, which need not be imported to be recognised."""

    def tolist(self) -> object: ...


class Record:
    """A dataclass that turns into a line: numbers, texts, lists and dictionaries."""

    def to_dict(self) -> Line:
        """Return the record as plain values, with the keys of `--json`."""
        return line_of(cast("DataclassInstance", self))


class TaggedRecord(Record):
    """A result of one of several kinds; `what` says of which, in JSON and CSV."""

    what: ClassVar[str]

    def to_dict(self) -> Line:
        """Return the record as plain values."""
        return {"what": self.what, **super().to_dict()}


def plain_value(value: object) -> Value:
    """Return a value of a record as JSON has it: arrays as lists, NaN and infinity as None."""
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return cast(Value, value)
    if kind is float:  # first: the curves of a long series are a million numbers
        return cast(float, value) if isfinite(cast(float, value)) else None
    if isinstance(value, Record):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return line_of(value)
    if isinstance(value, _Listable):
        return plain_value(value.tolist())
    if isinstance(value, Mapping):
        pairs = cast(Mapping[object, object], value).items()
        return {str(name): plain_value(each) for name, each in pairs}
    if isinstance(value, tuple | list):
        return [plain_value(each) for each in cast(Sequence[object], value)]
    if isinstance(value, float) and not isfinite(value):
        return None
    return cast(Value, value)


def line_of(record: "DataclassInstance") -> Line:
    """Return the fields of a dataclass as plain values."""
    return {each.name: plain_value(getattr(record, each.name)) for each in fields(record)}


def whole_line(record: Record, fields: Iterable[Field], shared: Line) -> Line:
    """Return a line with every field: what a record does not have is empty."""
    empty: Line = {each.name: "" if each.kind == "text" else None for each in fields}
    return empty | shared | record.to_dict()


def _fields(kind: Kind, *names: str) -> tuple[Field, ...]:
    """Return a field of one kind for each name."""
    return tuple(Field(name, kind) for name in names)


texts = partial(_fields, "text")
numbers = partial(_fields, "number")
integers = partial(_fields, "integer")


def as_csv(fields: Sequence[Field], lines: Sequence[Line]) -> str:
    """A header, then one row per line with all digits; nested values are JSON text."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields)
    writer.writerows([_csv_cell(line.get(f.name), f.joined) for f in fields] for line in lines)
    return text.getvalue()


def as_pandas(fields: Sequence[Field], lines: Sequence[Line]) -> "pandas.DataFrame":
    """A pandas frame with one row per line and the types of the fields, also when empty."""
    pandas = _import("pandas")
    kinds = {
        "text": "str",
        "json": "str",
        "number": "float64",
        "integer": "int64",
        "flag": "bool",
    }
    with_missing = {"integer": "Int64", "flag": "boolean"}
    series = {
        field.name: pandas.Series(
            _cells(field, lines),
            dtype=(kinds | with_missing if field.optional else kinds).get(field.kind, "object"),
        )
        for field in fields
    }
    return pandas.DataFrame(series)


def as_polars(fields: Sequence[Field], lines: Sequence[Line]) -> "polars.DataFrame":
    """A polars frame with one row per line and the types of the fields, also when empty."""
    polars = _import("polars")
    kinds = {
        "text": polars.String,
        "json": polars.String,
        "number": polars.Float64,
        "integer": polars.Int64,
        "flag": polars.Boolean,
        "texts": polars.List(polars.String),
        "integers": polars.List(polars.Int64),
        "numbers": polars.List(polars.Float64),
    }
    return polars.DataFrame(
        [polars.Series(f.name, _cells(f, lines), dtype=kinds[f.kind]) for f in fields]
    )


_SCALARS: dict[str, Callable[[str | float], Value]] = {
    "text": str,
    "number": float,
    "integer": int,
    "flag": bool,
}


def _cells(field: Field, lines: Sequence[Line]) -> list[Value]:
    return [_cell(field.kind, line.get(field.name)) for line in lines]


def _cell(kind: str, value: Value) -> Value:
    """Convert a value to the type of its column; lists entry by entry."""
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_cell(kind.removesuffix("s"), each) for each in value]
    if isinstance(value, Mapping):
        raise TypeError(f"expected a column of kind json for a mapping, got {kind}")
    return _SCALARS[kind](value)


def _csv_cell(value: Value, joined: bool) -> str | int | float | None:
    """Return a cell of CSV; a text that a spreadsheet would compute is quoted.

    Names come from files that anyone may have written, and a text that begins with one of
    `=+-@` is a formula to a spreadsheet, which may start programs. An apostrophe before it
    makes it a text. Numbers are left alone.
    """
    if isinstance(value, str):
        text = plain(value)
    elif isinstance(value, Sequence | Mapping):
        text = plain("; ".join(map(str, value)) if joined else json.dumps(value))
    else:
        return value
    return f"'{text}" if text.startswith(_FORMULA) else text


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"cannot make a {name} frame without {name}",
            hint=f"pip install {name}",
            slug="frame-package",
        ) from error
