"""csv and tsv: separators, cells, and which column a name means."""

import csv
from collections.abc import Callable, Sequence

from isoscope.source.faults import BadRecordError, decode_utf8
from isoscope.source.lines import MAX_LINE

Split = Callable[[bytes], list[str]]  # the cells of a record


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
