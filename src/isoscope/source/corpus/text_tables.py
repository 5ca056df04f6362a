"""Documents in tables: one per record of csv, tsv and jsonl, one per row of parquet."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from isoscope.errors import SourceError
from isoscope.source.border import (
    BadRecordError,
    bad_document,
    border,
    damaged,
    no_column,
    no_documents,
    printable,
)
from isoscope.source.bytes import FileBytes, RandomBytes, TemporaryBytes
from isoscope.source.corpus.plain_text import check_text
from isoscope.source.corpus.text_corpus import (
    TextCorpus,
    TextFields,
    TextFormat,
    text_fields,
)
from isoscope.source.csv import Split, count_names, guess_separator, split_cells, split_tabs
from isoscope.source.jsonl import decode_json, describe_value
from isoscope.source.lines import (
    RawRecord,
    TooLong,
    csv_records,
    filled_lines,
    text_too_long,
)
from isoscope.source.parquet import KIND, ParquetFile
from isoscope.source.request import CorpusRequest

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 256  # of parquet, decoded at a time
Records = Callable[[], Iterator[RawRecord]]


def open_csv(data: RandomBytes, request: CorpusRequest) -> TextCorpus:
    """The texts of a csv file: the first record names the columns.

    Where columns are named by their numbers, from 0, and not all of them are names of
    columns, the file has no such record.
    """
    return _open_cells(data, request, *_csv_reader(data))


def open_tsv(data: RandomBytes, request: CorpusRequest) -> TextCorpus:
    """The texts of a tsv file, in which every line is a record, whatever is quoted in it."""
    return _open_cells(data, request, *_tsv_reader(data))


def csv_header(data: RandomBytes) -> list[str]:
    """The cells of the first record."""
    return _header(data, *_csv_reader(data))


def tsv_header(data: RandomBytes) -> list[str]:
    """The cells of the first line."""
    return _header(data, *_tsv_reader(data))


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

    return TextCorpus(
        data,
        _read(data, filled_lines),
        TextFormat(parse, request.stamp),
        skip_bad=request.skip_bad,
    )


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
    form = TextFormat(parse, request.stamp, unit="row")
    return TextCorpus(copy, _copy_rows(file, copy, request), form, skip_bad=request.skip_bad)


def read_objects(
    path: Path, on_bad: Callable[[str], None] | None = None
) -> Iterator[tuple[str, object]]:
    """The place and value of each line of jsonl, or row of parquet, with all its columns.

    A line that is not JSON is an error, or is skipped and its place passed to `on_bad`.
    """
    data = FileBytes(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        number = 0
        with border(data.place, KIND):
            for batch in ParquetFile(data).batches(None, ROWS):
                for row in batch.to_pylist():
                    yield f"{path}, row {number}", row
                    number += 1
        return
    for record in _read(data, filled_lines):
        place = f"{path}, line {record.number}"
        try:
            value = decode_json(record.raw)
        except BadRecordError as error:
            if on_bad is None:
                raise damaged(place, "a jsonl file", str(error)) from error
            on_bad(place)
        else:
            yield place, value


def _csv_reader(data: RandomBytes) -> tuple[Split, Records]:
    def records() -> Iterator[RawRecord]:
        return _read(data, csv_records)

    separator = guess_separator(_first_record(data, records()).raw, ",;\t")
    return lambda raw: split_cells(raw, separator), records


def _tsv_reader(data: RandomBytes) -> tuple[Split, Records]:
    return split_tabs, lambda: _read(data, filled_lines)


def _open_cells(
    data: RandomBytes, request: CorpusRequest, split: Split, records: Records
) -> TextCorpus:
    first = _header(data, split, records)
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

    body = records()
    if headed:
        next(body)
    return TextCorpus(data, body, TextFormat(parse, request.stamp), skip_bad=request.skip_bad)


def _header(data: RandomBytes, split: Split, records: Records) -> list[str]:
    first = _first_record(data, records())
    try:
        return [each.strip() for each in split(first.raw)]
    except BadRecordError as error:
        raise bad_document(f"{data.place}, line {first.number}", error) from None


def _first_record(data: RandomBytes, records: Iterator[RawRecord]) -> RawRecord:
    """The first record, which is required even if bad ones may be dropped."""
    check_text(data)
    record = next(records, None)
    if record is None:
        raise no_documents(data.place)
    return record


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
    with border(copy.place, KIND):
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
