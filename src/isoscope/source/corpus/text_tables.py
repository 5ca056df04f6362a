"""Documents in tables: one per record of csv, tsv and jsonl, one per row of parquet."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from isoscope.errors import SourceError
from isoscope.source.bytes import FileBytes, RandomBytes, TemporaryBytes
from isoscope.source.columnar import PARQUET_KIND, ParquetFile
from isoscope.source.corpus.corpus import CorpusRequest
from isoscope.source.corpus.texts import TextCorpus, TextFields, check_text, text_fields
from isoscope.source.csv import count_names, guess_separator, split_cells, split_tabs
from isoscope.source.file_errors import (
    BadRecordError,
    bad_document,
    border,
    damaged,
    no_column,
    no_documents,
    printable,
)
from isoscope.source.jsonl import decode_json, describe_value
from isoscope.source.lines import (
    RawRecord,
    TooLong,
    csv_records,
    filled_lines,
    text_too_long,
)

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 256  # of parquet, decoded at a time


def open_csv(data: RandomBytes, request: CorpusRequest, *, tabs: bool = False) -> TextCorpus:
    """The texts of a csv file: the first record names the columns.

    Where columns are named by their numbers, from 0, and not all of them are names of
    columns, the file has no such record. With `tabs` it is a tsv file, in which every line
    is a record, whatever is quoted in it.
    """
    first, split = _read_header(data, tabs=tabs)
    named = [column for column in request.roles if column is not None]
    # A first record of data may hold one of the numbers, as labels do, but hardly all of them.
    by_number = all(column.isdigit() for column in named)
    headed = not by_number or all(column in first for column in named)
    names = first if headed else count_names(first)
    for column in named:
        if column not in names:
            raise no_column(column, names, data.place)
    at = [None if column is None else names.index(column) for column in request.roles]

    def parse(raw: bytes) -> TextFields:
        cells = split(raw)
        if any(column is not None and column >= len(cells) for column in at):
            raise BadRecordError(f"a record of {len(cells)} cells")
        values = [None if column is None else cells[column] for column in at]
        return text_fields(*values, named=request.id is not None)

    records = islice(_read(data, filled_lines if tabs else csv_records), int(headed), None)
    return TextCorpus(data, records, parse, request.stamp, skip_bad=request.skip_bad)


def csv_header(data: RandomBytes, *, tabs: bool = False) -> list[str]:
    """The cells of the first record."""
    return _read_header(data, tabs=tabs)[0]


open_tsv = partial(open_csv, tabs=True)
tsv_header = partial(csv_header, tabs=True)


def open_jsonl(data: RandomBytes, request: CorpusRequest) -> TextCorpus:
    """The texts of a jsonl file."""
    check_text(data)
    names = json_fields(data, first=False)
    for column in request.roles:  # missing in the first object: a slip, rather than a gap
        if names is not None and column is not None and column not in names:
            raise no_column(column, names, data.place)

    def parse(raw: bytes) -> TextFields:
        value = decode_json(raw)
        if not isinstance(value, dict):
            raise BadRecordError(describe_value(value))
        if request.text not in value:
            raise BadRecordError(f"no field {request.text!r}")
        values = [value.get(each) if each else None for each in request.roles]
        return text_fields(*values, named=request.id is not None)

    lines = _read(data, filled_lines)
    return TextCorpus(data, lines, parse, request.stamp, skip_bad=request.skip_bad)


def json_fields(data: RandomBytes, *, first: bool = True) -> list[str] | None:
    """The fields of the first object, or with `first` of the first line; None without one."""
    for record in _read(data, filled_lines):
        try:
            value = decode_json(record.raw)
        except BadRecordError:
            value = None
        if isinstance(value, dict):
            return list(value)
        if first:
            return None
    return None


def open_parquet(data: FileBytes, request: CorpusRequest) -> TextCorpus:
    """The texts of a parquet file, copied out because rows cannot be read singly."""
    import msgspec

    decode = msgspec.msgpack.Decoder(list[object]).decode

    def parse(raw: bytes) -> TextFields:
        return text_fields(*decode(raw), named=request.id is not None)

    file = ParquetFile(data)
    copy = TemporaryBytes(data.name, data.place)
    return TextCorpus(
        copy,
        _copy_rows(file, copy, request),
        parse,
        request.stamp,
        unit="row",
        skip_bad=request.skip_bad,
    )


def read_objects(
    path: Path, on_bad: Callable[[str], None] | None = None
) -> Iterator[tuple[str, object]]:
    """The place and value of each line of jsonl, or row of parquet, with all its columns.

    A line that is not JSON is an error, or is skipped and its place passed to `on_bad`.
    """
    data = FileBytes(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        with border(data.place, PARQUET_KIND):
            batches = ParquetFile(data).batches(None, ROWS)
            rows = (row for batch in batches for row in batch.to_pylist())
            yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows))
        return
    for record in _read(data, filled_lines):
        place = f"{path}, line {record.number}"
        try:
            yield place, decode_json(record.raw)
        except BadRecordError as error:
            if on_bad is None:
                raise damaged(place, "a jsonl file", str(error)) from error
            on_bad(place)


def _read_header(
    data: RandomBytes, *, tabs: bool
) -> tuple[list[str], Callable[[bytes], list[str]]]:
    """The cells of the first record, and a function that splits the others like it."""
    check_text(data)
    first = next(_read(data, filled_lines if tabs else csv_records), None)
    if first is None:  # required even if bad ones may be dropped
        raise no_documents(data.place)
    split = split_tabs
    if not tabs:
        split = partial(split_cells, separator=guess_separator(first.raw, ",;\t"))
    try:
        return [each.strip() for each in split(first.raw)], split
    except BadRecordError as error:
        raise bad_document(f"{data.place}, line {first.number}", error) from None


def _read(
    data: RandomBytes, reader: Callable[[BinaryIO, str, TooLong], Iterator[RawRecord]]
) -> Iterator[RawRecord]:
    with border(data.place), data.open() as stream:
        yield from reader(stream, data.place, text_too_long)


def _copy_rows(
    file: ParquetFile, copy: TemporaryBytes, request: CorpusRequest
) -> Iterator[RawRecord]:
    import msgspec

    encode = msgspec.msgpack.Encoder().encode
    _check_types(file.schema, request, copy.place)
    columns = list(dict.fromkeys(each for each in request.roles if each is not None))
    number = 0
    with border(copy.place, PARQUET_KIND):
        for batch in file.batches(columns, ROWS):
            values = [_column_values(batch, each) for each in request.roles]
            for row in zip(*values, strict=True):
                raw = encode(row)
                yield RawRecord(number, copy.append(raw), raw)
                number += 1
    copy.finish()


def _check_types(schema: "pa.Schema", request: CorpusRequest, place: str) -> None:
    import pyarrow as pa

    for role, column in zip(("text", "target", "id", "label"), request.roles, strict=True):
        if column is None:
            continue
        if column not in schema.names:
            raise no_column(column, schema.names, place)
        kind = schema.field(column).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        text = pa.types.is_string(plain) or pa.types.is_large_string(plain)
        number = pa.types.is_integer(plain) or pa.types.is_floating(plain)
        flag = role == "label" and pa.types.is_boolean(plain)
        if not (text or flag or (number and role != "text")):
            raise SourceError(
                f"expected text in column {column!r} of {place}, got {kind}",
                hint=f"name another column: {', '.join(map(printable, schema.names[:12]))}",
                slug="column-kind",
            )


def _column_values(batch: "pa.RecordBatch", column: str | None) -> list[object]:
    """The values of a column; text that is not UTF-8 becomes an error of its row alone."""
    if column is None:
        return [None] * len(batch)
    values = batch.column(column)
    try:
        return values.to_pylist()
    except UnicodeDecodeError:
        return [_scalar_value(each) for each in values]


def _scalar_value(scalar: "pa.Scalar") -> object:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes()
