"""What a csv file holds: its separator, its header, and which cells make the vector."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from isoscope.source.columns import labels_exist, matching, no_vectors, not_a_vector, the_only
from isoscope.source.labels import ROLES, Role
from isoscope.source.lines import MAX_LINE, Line
from isoscope.source.rowwise import BadLineError, bad_line
from isoscope.source.shape import no_rows, width
from isoscope.source.source import Wanted


@dataclass(frozen=True, slots=True)
class Sheet:
    """The layout of a csv file."""

    separator: str
    names: tuple[str, ...]  # of its columns; their numbers, from 0, where there is no header
    headed: bool
    vector: tuple[int, ...]
    listed: bool  # one cell holds the whole vector, as "[0.1, 0.2]"
    width: int
    labels: dict[Role, int]


def sheet(sample: Sequence[Line], separator: str | None, wanted: Wanted, place: str) -> Sheet:
    """Find out the layout from the first few records."""
    if not sample:
        raise no_rows(place)
    separator = separator or _separator(sample[0][1])
    table = _table(sample, separator, wanted, place)
    headed = is_header(table[0])
    names = [each.strip() for each in table[0]] if headed else _numbered(table[0])
    body = table[1:] if headed else table
    if not body:
        raise no_rows(place)
    labels_exist(wanted, names)
    labels: dict[Role, int] = {
        role: names.index(name) for role in ROLES if (name := getattr(wanted, role)) is not None
    }
    vector = _vector(names, body, wanted, place, headed=headed)
    listed = len(vector) == 1 and _is_list(body, vector[0])
    d = _list_width(body, vector[0]) if listed else len(vector)
    return Sheet(
        separator, tuple(names), headed, tuple(vector), listed, width(d, place), labels
    )


def _table(
    sample: Sequence[Line], separator: str, wanted: Wanted, place: str
) -> list[list[str]]:
    table: list[list[str]] = []
    for number, record in sample:
        try:
            table.append(split(record, separator, "replace"))
        except BadLineError as error:
            if table and wanted.skip_bad:
                continue
            raise bad_line(place, number, None, str(error)) from error
    return table


def split(record: bytes, separator: str, errors: str = "strict") -> list[str]:
    """The cells of one record."""
    try:
        text = record.decode("utf-8", errors)
        if '"' not in text:
            return text.split(separator)
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
        return next(csv.reader([text], delimiter=separator))
    except UnicodeDecodeError:
        raise BadLineError("bytes that are not UTF-8") from None
    except csv.Error as error:
        raise BadLineError(f"a record that is no csv ({error})") from None


def number(cell: str) -> float | None:
    """The number in a cell, or None."""
    try:
        return None if "_" in cell else float(cell)  # Python would read 1_0 as ten
    except ValueError:
        return None


def numbers(cell: str) -> list[float]:
    """The numbers of a list in one cell, as JSON, Python or NumPy write it."""
    values: list[float] = []
    for each in bare(cell).replace(",", " ").split():
        value = number(each)
        if value is None:
            raise BadLineError(f"{each[:40]!r} among them")
        values.append(value)
    return values


def bare(cell: str) -> str:
    """What stands between the brackets of a list in one cell."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        raise BadLineError(f"the cell {text[:40]!r}")
    return text[1:-1]


def is_header(cells: Sequence[str]) -> bool:
    """Whether the first record names the columns.

    A header has no number with a fraction in it. Numbers alone are a header only if they
    count the columns from 0, as pandas names those of a plain matrix.
    """
    values = [number(each) for each in cells]
    if all(value is not None for value in values):
        return len(cells) > 2 and [each.strip() for each in cells] == _numbered(cells)
    return all(
        value is None or cell.strip().isdigit()
        for value, cell in zip(values, cells, strict=True)
    )


def _vector(
    names: list[str], body: list[list[str]], wanted: Wanted, place: str, *, headed: bool
) -> list[int]:
    if wanted.column is not None:
        chosen = [names.index(name) for name in matching(wanted.column, names)]
        for i in chosen:
            if not _is_numeric(body, i) and not (len(chosen) == 1 and _is_list(body, i)):
                raise not_a_vector(place, names[i], f"{_cell(body[0], i)[:40]!r}")
        return chosen
    free = [i for i, name in enumerate(names) if name not in wanted.labels]
    lists = [names[i] for i in free if _is_list(body, i)]
    if lists:
        return [names.index(the_only(lists, place))]
    # A column without a name, or with pandas' name for none, numbers the rows.
    counted = ("", "Unnamed: 0") if headed and len(free) > 1 else ()
    numeric = [i for i in free if names[i] not in counted and _is_numeric(body, i)]
    if not numeric:
        raise no_vectors(place, names)
    return numeric


def _is_numeric(body: list[list[str]], column: int) -> bool:
    # One number is enough: a string among numbers is a fault to be named, not a column
    # to be left out.
    return any(number(_cell(cells, column)) is not None for cells in body)


def _is_list(body: list[list[str]], column: int) -> bool:
    lists = any(_cell(cells, column).lstrip().startswith("[") for cells in body)
    return lists and not _is_numeric(body, column)


def _list_width(body: list[list[str]], column: int) -> int:
    for cells in body:
        try:
            return len(numbers(_cell(cells, column)))
        except BadLineError:
            continue
    return 0


def _cell(cells: list[str], column: int) -> str:
    return cells[column] if column < len(cells) else ""


def _separator(record: bytes) -> str:
    return max([",", "\t", ";"], key=lambda each: record.count(each.encode()))


def _numbered(cells: Sequence[str]) -> list[str]:
    return [str(i) for i in range(len(cells))]
