"""csv and tsv: separators and cells, and vectors in columns or in lists of one cell."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import BinaryIO

from isoscope.dataclass import dataclass
from isoscope.source.bytes import ByteSource
from isoscope.source.columns import (
    check_labels,
    match_columns,
    no_vectors,
    not_a_vector,
    only_column,
    refuse_ids,
)
from isoscope.source.file_errors import BadRecordError, bad_row, decode_utf8
from isoscope.source.lines import (
    MAX_LINE,
    Labels,
    ParseRow,
    RawRecord,
    batches_of,
    csv_records,
    line_source,
    row_too_long,
)
from isoscope.source.row_source import (
    MAX_WIDTH,
    Role,
    RowSource,
    VectorRequest,
    check_width,
    no_rows,
)

SAMPLE = 64  # records from which the columns are determined
SAMPLE_BYTES = 4e6  # about as many, besides the first record
ENTRY = re.compile(r"[^\s,]+")  # of a list in one cell


def guess_separator(record: bytes, candidates: str) -> str:
    """The candidate that occurs most often in a record, the first one of equals."""
    return max(candidates, key=lambda each: record.count(each.encode()))


def split_cells(record: bytes, separator: str, *, strict: bool = True) -> list[str]:
    """The cells of a record; without `strict`, bytes that are not UTF-8 are replaced."""
    text = decode_utf8(record) if strict else record.decode("utf-8", "replace")
    if '"' not in text:
        return text.split(separator)
    try:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
        return next(csv.reader([text], delimiter=separator))
    except csv.Error as error:
        raise BadRecordError(f"a record that is not csv ({error})") from None


def split_tabs(record: bytes) -> list[str]:
    """The cells of a line of tsv, in which quotation marks need not be balanced."""
    return [_unquote(cell) for cell in decode_utf8(record).split("\t")]


def count_names(cells: Sequence[str]) -> list[str]:
    """The names of columns without a header: their numbers, from 0."""
    return [str(i) for i in range(len(cells))]


def _unquote(cell: str) -> str:
    """A cell without its quotes, unless they are part of what is quoted."""
    inner = cell[1:-1]
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"' or '"' in inner.replace('""', ""):
        return cell
    return inner.replace('""', '"')


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
        some = islice(records(stream), SAMPLE)
        sample = [*islice(some, 1), *next(batches_of(some, SAMPLE, SAMPLE_BYTES), [])]
    columns = csv_columns(sample, separator, request, data.place)
    return line_source(
        data,
        request,
        columns.width,
        ",".join(map(str, columns.vector)),
        lambda stream: islice(records(stream), int(columns.headed), None),
        _csv_parser(columns),
    )


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

    def column(i: int) -> list[str]:
        return [row[i] if i < len(row) else "" for row in body]

    vector = _csv_vector(names, column, request, place, headed=headed)
    listed = len(vector) == 1 and _holds(column(vector[0])) == "lists"
    width = _list_width(column(vector[0])) if listed else len(vector)
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
        counted = (cell.strip() == str(i) for i, cell in enumerate(cells))
        return len(cells) > 2 and all(counted)
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
    return [
        _number_in(each, "among them") for each in _list_body(cell).replace(",", " ").split()
    ]


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
            vector = [
                _number_in(cells[i], f"in column {columns.names[i]!r}") for i in columns.vector
            ]
        labels: Labels = {role: cells[i] for role, i in columns.labels.items()}
        if labels.get("document") == "":
            labels["document"] = None
        return vector, labels

    return parse


def _number_in(cell: str, where: str) -> float:
    value = parse_number(cell)
    if value is None:
        raise BadRecordError(f"{cell[:40]!r} {where}")
    return value


def _list_body(cell: str) -> str:
    """The text between the brackets of a list in one cell."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        raise BadRecordError(f"the cell {text[:40]!r}")
    return text[1:-1]


def _csv_vector(
    names: list[str],
    column: Callable[[int], list[str]],  # the cells of one, from its number
    request: VectorRequest,
    place: str,
    *,
    headed: bool,
) -> list[int]:
    holds = [_holds(column(i)) for i in range(len(names))]
    if request.column is not None:
        at = {name: i for i, name in reversed(list(enumerate(names)))}  # the first of equals
        chosen = [at[name] for name in match_columns(request.column, names)]
        for i in chosen:
            if holds[i] != "numbers" and (len(chosen) > 1 or holds[i] != "lists"):
                raise not_a_vector(place, names[i], f"{column(i)[0][:40]!r}")
        return chosen
    free = [i for i, name in enumerate(names) if name not in request.roles.values()]
    lists = [names[i] for i in free if holds[i] == "lists"]
    if lists:
        return [names.index(only_column(lists, place))]
    # A column without a name, or with pandas' name for none, numbers the rows.
    counted = ("", "Unnamed: 0") if headed and len(free) > 1 else ()
    numeric = [i for i in free if names[i] not in counted and holds[i] == "numbers"]
    if not numeric:
        raise no_vectors(place, names)
    refuse_ids([names[i] for i in numeric], place)
    return numeric


def _holds(cells: list[str]) -> str:
    """What a column holds: numbers, lists or nothing that could be a vector."""
    # One number is enough: a string among numbers is an error to report, not a reason to
    # skip the column.
    if any(parse_number(cell) is not None for cell in cells):
        return "numbers"
    return "lists" if any(cell.lstrip().startswith("[") for cell in cells) else ""


def _list_width(cells: list[str]) -> int:
    for cell in cells:
        with suppress(BadRecordError):
            # Counted before they are numbers, each of which takes memory.
            found = sum(1 for _ in islice(ENTRY.finditer(_list_body(cell)), MAX_WIDTH + 1))
            return found if found > MAX_WIDTH else len(parse_list(cell))
    return 0
