"""Vectors in lines of text: numbers or lists in csv and tsv, lists or objects in jsonl."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from isoscope.errors import ColumnError
from isoscope.registry import unknown
from isoscope.source.bytes import ByteSource
from isoscope.source.columns import (
    check_labels,
    match_columns,
    no_vectors,
    not_a_vector,
    only_column,
)
from isoscope.source.csv import count_names, guess_separator, split_cells
from isoscope.source.faults import BadRecordError, bad_row
from isoscope.source.jsonl import Json, decode_json, describe_value
from isoscope.source.lines import (
    RawRecord,
    batches_of,
    csv_records,
    filled_lines,
    row_too_long,
)
from isoscope.source.request import Role, VectorRequest
from isoscope.source.row_labels import label_chunk
from isoscope.source.row_source import PassCounts, RowSource
from isoscope.source.shape import DECODED_BYTES, check_width, no_rows, rows_per_chunk
from isoscope.types import Chunk

SAMPLE = 64  # records from which the columns of a csv file are determined
PATIENCE = 1000  # lines of jsonl that may be bad before the first good one

Labels = dict[Role, Json]
ParseRow = Callable[[bytes], tuple[list[float], Labels]]  # may raise BadRecordError


@dataclass(frozen=True, slots=True)
class LineFormat:
    """What every line of a source is, and how it is read."""

    width: int
    roles: tuple[Role, ...]
    stamp: str  # the column, for the fingerprint
    records: Callable[[BinaryIO], Iterator[RawRecord]]
    parse: ParseRow


def line_source(data: ByteSource, request: VectorRequest, lines: LineFormat) -> RowSource:
    """The rows of a file or stream of lines."""
    most = rows_per_chunk(lines.width, "float64", DECODED_BYTES)

    def read(limit: int, counts: PassCounts) -> Iterator[Chunk]:
        start = 0
        with data.open() as stream:
            for batch in batches_of(lines.records(stream), min(limit, most)):
                yield parse_batch(data, request, lines, batch, start, counts)
                start += len(batch)

    return RowSource(
        name=data.name,
        width=lines.width,
        rows=None,
        rereadable=data.rereadable,
        dtype="float64",
        place=data.place,
        read=read,
        stamp=lambda: data.stamp(lines.stamp),
        has_documents="document" in lines.roles,
        drops=request.skip_bad,
    )


def parse_batch(
    data: ByteSource,
    request: VectorRequest,
    lines: LineFormat,
    batch: Sequence[RawRecord],
    start: int,
    counts: PassCounts,
) -> Chunk:
    """The rows of a batch of lines, the first of which has the ordinal `start`."""
    rows = np.empty((len(batch), lines.width))
    kept: list[int] = []
    labels: dict[Role, list[Json]] = {role: [] for role in lines.roles}
    for index, record in enumerate(batch):
        try:
            vector, found = lines.parse(record.raw)
            if len(vector) != lines.width:
                raise BadRecordError(f"{len(vector)}")
            if "document" in labels and found.get("document") is None:
                raise BadRecordError("no document")
        except BadRecordError as error:
            if not request.skip_bad:
                raise bad_row(data.place, record.number, lines.width, error) from error
            counts.skipped += 1
            continue
        rows[len(kept)] = vector
        kept.append(index)
        for role, values in labels.items():
            values.append(found.get(role))
    whole = len(kept) == len(batch)
    ordinals = None if whole else start + np.array(kept, dtype=np.int64)
    return label_chunk(rows[: len(kept)], data, start, labels, ordinals)


# csv


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """The columns of a csv file."""

    separator: str
    names: tuple[str, ...]  # their numbers, from 0, where there is no header
    headed: bool
    vector: tuple[int, ...]
    listed: bool  # one cell holds the whole vector, as "[0.1, 0.2]"
    width: int
    labels: dict[Role, int]


def open_csv(
    data: ByteSource, request: VectorRequest, separator: str | None = None
) -> RowSource:
    """The rows of a csv file or stream; without a separator, it is guessed."""

    def records(stream: BinaryIO) -> Iterator[RawRecord]:
        return csv_records(stream, data.place, row_too_long)

    with data.open(peek=True) as stream:
        sample = next(batches_of(islice(records(stream), SAMPLE), SAMPLE, 4e6), [])
    columns = csv_columns(sample, separator, request, data.place)
    lines = LineFormat(
        columns.width,
        tuple(columns.labels),
        ",".join(map(str, columns.vector)),
        lambda stream: islice(records(stream), int(columns.headed), None),
        _csv_parser(columns),
    )
    return line_source(data, request, lines)


def csv_columns(
    sample: Sequence[RawRecord], separator: str | None, request: VectorRequest, place: str
) -> CsvColumns:
    """Determine the columns from the first records."""
    if not sample:
        raise no_rows(place)
    separator = separator or guess_separator(sample[0].raw, ",\t;")
    table: list[list[str]] = []
    for number, _, record in sample:
        try:
            table.append(split_cells(record, separator, strict=False))
        except BadRecordError as error:
            if not table or not request.skip_bad:
                raise bad_row(place, number, None, error) from error
    headed = is_header(table[0])
    names = [each.strip() for each in table[0]] if headed else count_names(table[0])
    body = table[1:] if headed else table
    if not body:
        raise no_rows(place)
    check_labels(request, names)
    vector = _csv_vector(names, body, request, place, headed=headed)
    listed = len(vector) == 1 and _is_list(body, vector[0])
    width = _list_width(body, vector[0]) if listed else len(vector)
    labels = {role: names.index(name) for role, name in request.roles.items()}
    return CsvColumns(
        separator,
        tuple(names),
        headed,
        tuple(vector),
        listed,
        check_width(width, place),
        labels,
    )


def is_header(cells: Sequence[str]) -> bool:
    """Whether the first record names the columns.

    A header has no number with a fraction in it. Numbers alone are a header only if they
    count the columns from 0, as pandas names those of a plain matrix.
    """
    values = [parse_number(each) for each in cells]
    if all(value is not None for value in values):
        return len(cells) > 2 and [each.strip() for each in cells] == count_names(cells)
    return all(
        value is None or cell.strip().isdigit()
        for value, cell in zip(values, cells, strict=True)
    )


def parse_number(cell: str) -> float | None:
    """The number in a cell, or None."""
    try:
        return None if "_" in cell else float(cell)  # Python would read 1_0 as ten
    except ValueError:
        return None


def parse_list(cell: str) -> list[float]:
    """The numbers of a list in one cell, as JSON, Python or NumPy write it."""
    values: list[float] = []
    for each in _list_body(cell).replace(",", " ").split():
        value = parse_number(each)
        if value is None:
            raise BadRecordError(f"{each[:40]!r} among them")
        values.append(value)
    return values


def _csv_parser(columns: CsvColumns) -> ParseRow:
    """A function from a record to its row.

    Numbers with commas between them are JSON except for the brackets, and the JSON decoder
    is five times as fast as numpy.loadtxt. What it does not accept is read cell by cell,
    to accept "+.5" and "nan" and to name what is wrong.
    """
    import msgspec

    decode = msgspec.json.Decoder(list[float]).decode
    plain = columns.separator == "," and columns.vector == tuple(range(len(columns.names)))

    def fast(text: bytes) -> list[float] | None:
        try:
            found = decode(b"[%b]" % text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return found if len(found) == columns.width else None  # "0,5" is not two numbers

    def parse(record: bytes) -> tuple[list[float], Labels]:
        if plain and not columns.listed and (quick := fast(record)) is not None:
            return quick, {}
        cells = split_cells(record, columns.separator)
        if len(cells) != len(columns.names):
            raise BadRecordError(f"{len(cells)} cells instead of {len(columns.names)}")
        chosen = [cells[i] for i in columns.vector]
        text = _list_body(chosen[0]) if columns.listed else ",".join(chosen)
        vector = fast(text.encode())
        if vector is None and columns.listed:
            vector = parse_list(chosen[0])
        elif vector is None:
            vector = [_number_in(cells[i], columns.names[i]) for i in columns.vector]
        labels: Labels = {role: cells[i] for role, i in columns.labels.items()}
        if labels.get("document") == "":
            labels["document"] = None
        return vector, labels

    return parse


def _number_in(cell: str, column: str) -> float:
    value = parse_number(cell)
    if value is None:
        raise BadRecordError(f"{cell[:40]!r} in column {column!r}")
    return value


def _list_body(cell: str) -> str:
    """The text between the brackets of a list in one cell."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        raise BadRecordError(f"the cell {text[:40]!r}")
    return text[1:-1]


def _csv_vector(
    names: list[str],
    body: list[list[str]],
    request: VectorRequest,
    place: str,
    *,
    headed: bool,
) -> list[int]:
    if request.column is not None:
        chosen = [names.index(name) for name in match_columns(request.column, names)]
        for i in chosen:
            if not _is_numeric(body, i) and not (len(chosen) == 1 and _is_list(body, i)):
                raise not_a_vector(place, names[i], f"{_cell(body[0], i)[:40]!r}")
        return chosen
    free = [i for i, name in enumerate(names) if name not in request.labels]
    lists = [names[i] for i in free if _is_list(body, i)]
    if lists:
        return [names.index(only_column(lists, place))]
    # A column without a name, or with pandas' name for none, numbers the rows.
    counted = ("", "Unnamed: 0") if headed and len(free) > 1 else ()
    numeric = [i for i in free if names[i] not in counted and _is_numeric(body, i)]
    if not numeric:
        raise no_vectors(place, names)
    return numeric


def _is_numeric(body: list[list[str]], column: int) -> bool:
    # One number is enough: a string among numbers is an error to report, not a reason to
    # skip the column.
    return any(parse_number(_cell(cells, column)) is not None for cells in body)


def _is_list(body: list[list[str]], column: int) -> bool:
    lists = any(_cell(cells, column).lstrip().startswith("[") for cells in body)
    return lists and not _is_numeric(body, column)


def _list_width(body: list[list[str]], column: int) -> int:
    for cells in body:
        try:
            return len(parse_list(_cell(cells, column)))
        except BadRecordError:
            continue
    return 0


def _cell(cells: list[str], column: int) -> str:
    return cells[column] if column < len(cells) else ""


# jsonl


def open_jsonl(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of a jsonl file or stream."""

    def records(stream: BinaryIO) -> Iterator[RawRecord]:
        return filled_lines(stream, data.place, row_too_long)

    with data.open(peek=True) as stream:
        field, width = _first_vector(records(stream), request, data.place)
    roles = tuple(request.roles)
    lines = LineFormat(width, roles, field or "", records, _json_parser(field, request))
    return line_source(data, request, lines)


def _first_vector(
    records: Iterator[RawRecord], request: VectorRequest, place: str
) -> tuple[str | None, int]:
    """The field that holds the vector, None where the line itself does, and its width."""
    bad = 0
    for number, _, line in records:
        try:
            value = decode_json(line)
            field = _vector_field(value, request, place)
            vector = _json_vector(value, field)
        except BadRecordError as error:
            bad += 1
            if request.skip_bad and bad <= PATIENCE:
                continue
            raise bad_row(place, number, None, error) from error
        if field is None and (request.labels or request.column is not None):
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
        if name not in request.labels
        and isinstance(each, list)
        and each
        and _is_number(each[0])
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
        try:
            if field is None:
                return decode_list(line), {}
            if decode_object is None:
                return slow(line)
            found = decode_object(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return slow(line)  # NaN is not JSON, but Python writes it
        labels = {role: getattr(found, attributes[name]) for role, name in names.items()}
        _check_document(labels.get("document"))
        return found.vector, labels

    def slow(line: bytes) -> tuple[list[float], Labels]:
        value = decode_json(line)
        vector = _json_vector(value, field)
        if not isinstance(value, dict):
            return vector, {}
        labels: Labels = {role: value.get(name) for role, name in names.items()}
        _check_document(labels.get("document"))
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
        if isinstance(each, bool) or not isinstance(each, int | float):
            raise BadRecordError(f"{describe_value(each)} among them")
        try:
            numbers.append(float(each))
        except OverflowError:
            raise BadRecordError("a number beyond float64") from None
    return numbers


def _check_document(value: Json) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise BadRecordError(f"{describe_value(value)} as document")


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
