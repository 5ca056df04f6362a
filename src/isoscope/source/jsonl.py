"""jsonl: a list of numbers a line, or an object with a field that holds one."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from isoscope.errors import ColumnError
from isoscope.registry import unknown
from isoscope.source.columns import labels_exist, the_only
from isoscope.source.feed import Feed
from isoscope.source.labels import ROLES
from isoscope.source.lines import batched, lines
from isoscope.source.rowwise import BadLineError, Row, Rowwise, bad_line
from isoscope.source.shape import DECODED_BYTES, no_rows, rows_per_chunk, width
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Chunk

PATIENCE = 1000  # lines that may be bad before the first good one


def open_jsonl(feed: Feed, wanted: Wanted) -> Source:
    """The rows of a jsonl file or stream."""
    place = feed.place
    field, d = _first(feed, wanted)
    parse = _parser(field, wanted)
    most = rows_per_chunk(d, "float64", DECODED_BYTES)
    roles = tuple(role for role in ROLES if getattr(wanted, role) is not None)
    rowwise = Rowwise(feed.name, place, d, roles, wanted.skip_bad)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        start = 0
        with feed.open(False) as stream:
            for batch in batched(lines(stream, place), min(limit, most)):
                yield rowwise.chunk(batch, start, parse, tally)
                start += len(batch)

    return Source(
        feed.name, d, None, feed.rereadable, "float64", place, read,
        lambda: feed.stamp(field or ""), has_documents="document" in roles,
        drops=wanted.skip_bad,
    )  # fmt: skip


def _first(feed: Feed, wanted: Wanted) -> tuple[str | None, int]:
    """The field that holds the vector, None where the line itself does, and its width."""
    bad = 0
    with feed.open(True) as stream:
        for number, line in lines(stream, feed.place):
            try:
                value: Any = _loaded(line)
                field = _field(value, wanted, feed.place)
                vector = _numbers(value if field is None else value[field])
            except BadLineError as error:
                bad += 1
                if wanted.skip_bad and bad <= PATIENCE:
                    continue
                raise bad_line(feed.place, number, None, str(error)) from error
            if field is None and (wanted.labels or wanted.column is not None):
                raise ColumnError(
                    f"expected objects with fields in {feed.place}, got lists without names",
                    hint="leave the column out, or write one JSON object a line",
                    slug="no-columns",
                )
            return field, width(len(vector), feed.place)
    raise no_rows(feed.place)


def _field(value: Any, wanted: Wanted, place: str) -> str | None:
    if isinstance(value, list):
        return None
    if not isinstance(value, dict):
        raise BadLineError(_kind(value))
    fields: dict[str, Any] = value
    labels_exist(wanted, list(fields))
    if wanted.column is not None:
        if wanted.column not in fields:
            raise unknown("column", wanted.column, fields)
        return wanted.column
    lists = [
        name
        for name, each in fields.items()
        if name not in wanted.labels and isinstance(each, list) and each and _is_number(each[0])
    ]
    if not lists:
        raise BadLineError(f"an object without one (fields: {', '.join(fields)[:80]})")
    return the_only(lists, place)


def _parser(field: str | None, wanted: Wanted) -> Callable[[bytes], Row]:
    """A function from a line to its row: fast where it can be, exact about faults."""
    import msgspec

    names = {role: name for role in ROLES if (name := getattr(wanted, role)) is not None}
    others = {name: f"c{i}" for i, name in enumerate(dict.fromkeys(names.values()))}
    given = {role: others[name] for role, name in names.items()}
    decode = _decoder(field, others)

    def parse(line: bytes) -> Row:
        if decode is None:
            return _slowly(line, field, names)
        try:
            found = decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _slowly(line, field, names)  # NaN is no JSON, but Python writes it
        if field is None:
            return Row(found)
        labels = {role: getattr(found, attribute) for role, attribute in given.items()}
        _check_document(labels.get("document"))
        return Row(found.vector, **labels)

    return parse


def _decoder(field: str | None, others: dict[str, str]) -> Callable[[bytes], Any] | None:
    """A decoder of just the fields that are wanted, or None if it cannot be had."""
    import msgspec

    if field is None:
        return msgspec.json.Decoder(list[float]).decode
    fields = [("vector", list[float]), *((each, Any, None) for each in others.values())]
    rename = {"vector": field, **{attribute: name for name, attribute in others.items()}}
    try:
        return msgspec.json.Decoder(msgspec.defstruct("Line", fields, rename=rename)).decode
    except ValueError:  # a name that JSON has to escape
        return None


def _slowly(line: bytes, field: str | None, names: dict[Any, str]) -> Row:
    value = _loaded(line)
    if field is None:
        return Row(_numbers(value))
    if not isinstance(value, dict):
        raise BadLineError(_kind(value))
    if field not in value:
        raise BadLineError(f"no field {field!r}")
    labels = {role: value.get(name) for role, name in names.items()}
    _check_document(labels.get("document"))
    return Row(_numbers(value[field]), **labels)


def _check_document(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise BadLineError(f"{_kind(value)} as document")


def _loaded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except UnicodeDecodeError:
        raise BadLineError("bytes that are not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadLineError("text that is not JSON") from None


def _numbers(value: Any) -> list[float]:
    if not isinstance(value, list):
        raise BadLineError(_kind(value))
    for each in value:
        if not _is_number(each):
            raise BadLineError(f"{_kind(each)} among them")
    try:
        return [float(each) for each in value]
    except OverflowError:
        raise BadLineError("a number beyond float64") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a single number")
