"""jsonl: the value of a line, and vectors in lists or in fields of objects."""

import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeAlias

from isoscope.errors import ColumnError
from isoscope.registry import unknown
from isoscope.source.bytes import ByteSource
from isoscope.source.columns import check_labels, only_column
from isoscope.source.file_errors import BadEncodingError, BadRecordError, bad_row
from isoscope.source.lines import (
    Labels,
    ParseRow,
    RawRecord,
    filled_lines,
    line_source,
    row_too_long,
)
from isoscope.source.row_source import (
    MAX_WIDTH,
    RowSource,
    VectorRequest,
    check_width,
    no_rows,
)

PATIENCE = 1000  # lines that may be bad before the first good one

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_WORDS: dict[type[object], str] = {
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def decode_json(raw: bytes) -> Json:
    """The value of a line; NaN and infinity are accepted, as Python writes them."""
    import msgspec

    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # NaN is not JSON, but Python writes it and reads it
    try:
        return json.loads(raw)
    except UnicodeDecodeError:
        raise BadEncodingError("other bytes") from None
    except (ValueError, RecursionError):
        raise BadRecordError("a line that is not JSON") from None


def describe_value(value: object) -> str:
    """What a value is, in words."""
    return "nothing (null)" if value is None else _WORDS.get(type(value), "a number")


def open_jsonl(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of a jsonl file or stream."""

    def records(stream: BinaryIO) -> Iterator[RawRecord]:
        return filled_lines(stream, data.place, row_too_long)

    with data.open(peek=True) as stream:
        field, width = _first_vector(records(stream), request, data.place)
    return line_source(data, request, width, field or "", records, _json_parser(field, request))


def _first_vector(
    records: Iterator[RawRecord], request: VectorRequest, place: str
) -> tuple[str | None, int]:
    """The field that holds the vector, None where the line itself does, and its width."""
    bad = 0
    for number, _, line in records:
        try:
            value = decode_json(line)
            field = _vector_field(value, request, place)
            listed = value.get(field or "") if isinstance(value, dict) else value
            if isinstance(listed, list) and len(listed) > MAX_WIDTH:
                check_width(len(listed), place)  # before they are floats
            vector = _json_vector(value, field)
        except BadRecordError as error:
            bad += 1
            if request.skip_bad and bad <= PATIENCE:
                continue
            raise bad_row(place, number, None, error) from error
        if field is None and (request.roles or request.column is not None):
            raise ColumnError(
                f"expected objects with fields in {place}, got lists without names",
                hint="omit the column, or write one JSON object per line",
                slug="no-columns",
            )
        return field, check_width(len(vector), place)
    raise no_rows(place)


def _vector_field(value: Json, request: VectorRequest, place: str) -> str | None:
    if isinstance(value, list):
        return None
    if not isinstance(value, dict):
        raise BadRecordError(describe_value(value))
    check_labels(request, list(value))
    if request.column is not None:
        if request.column not in value:
            raise unknown("column", request.column, value)
        return request.column
    lists = [
        name
        for name, each in value.items()
        if name not in request.roles.values()
        and isinstance(each, list)
        and each
        and describe_value(each[0]) == "a number"
    ]
    if not lists:
        raise BadRecordError(f"an object without one (fields: {', '.join(value)[:80]})")
    return only_column(lists, place)


def _json_parser(field: str | None, request: VectorRequest) -> ParseRow:
    """A function from a line to its row: fast where it can be, exact about errors."""
    import msgspec

    names = request.roles
    attributes = {name: f"c{i}" for i, name in enumerate(dict.fromkeys(names.values()))}
    decode_list = msgspec.json.Decoder(list[float]).decode
    decode_object = None if field is None else _object_decoder(field, attributes)

    def parse(line: bytes) -> tuple[list[float], Labels]:
        found = None
        try:
            if field is None:
                return decode_list(line), {}
            if decode_object is not None:
                found = decode_object(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # NaN is not JSON, but Python writes it
        labels: Labels = {}
        if found is not None:
            vector = found.vector
            labels = {role: getattr(found, attributes[name]) for role, name in names.items()}
        else:
            value = decode_json(line)
            vector = _json_vector(value, field)
            if isinstance(value, dict):
                labels = {role: value.get(name) for role, name in names.items()}
        document = labels.get("document")
        if isinstance(document, bool) or not isinstance(document, str | int | None):
            raise BadRecordError(f"{describe_value(document)} as document")
        return vector, labels

    return parse


def _object_decoder(field: str, attributes: dict[str, str]) -> Callable[[bytes], Any] | None:
    """A decoder of the named fields only, or None where msgspec has no such decoder."""
    import msgspec

    optional = [(each, Any, None) for each in attributes.values()]
    rename = {"vector": field, **{attribute: name for name, attribute in attributes.items()}}
    try:
        line = msgspec.defstruct("Line", [("vector", list[float]), *optional], rename=rename)
    except ValueError:  # a name that JSON has to escape
        return None
    return msgspec.json.Decoder(line).decode


def _json_vector(value: Json, field: str | None) -> list[float]:
    if field is not None:
        if not isinstance(value, dict):
            raise BadRecordError(describe_value(value))
        if field not in value:
            raise BadRecordError(f"no field {field!r}")
        value = value[field]
    if not isinstance(value, list):
        raise BadRecordError(describe_value(value))
    numbers: list[float] = []
    for each in value:
        if not isinstance(each, int | float) or isinstance(each, bool):
            raise BadRecordError(f"{describe_value(each)} among them")
        try:
            numbers.append(float(each))
        except OverflowError:
            raise BadRecordError("a number beyond float64") from None
    return numbers
