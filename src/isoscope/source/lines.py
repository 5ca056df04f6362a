"""Lines of text and records of csv, of bounded length, with their numbers and offsets."""

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from isoscope.errors import SourceError
from isoscope.source.border import BOM, border
from isoscope.source.faults import document_too_large

MAX_LINE = 64 << 20  # bytes


class RawRecord(NamedTuple):
    """The bytes of one line or record, without the end of the line."""

    number: int  # of its first line, counted from 1 as editors do
    start: int  # offset in the file
    raw: bytes


TooLong = Callable[[str, int], SourceError]  # from a place and the number of a line


def read_lines(stream: BinaryIO, place: str, too_long: TooLong) -> Iterator[RawRecord]:
    """All lines, blank ones included."""
    for number, start, raw in _whole_lines(stream, place, too_long):
        yield RawRecord(number, start, raw.rstrip(b"\r\n"))


def filled_lines(stream: BinaryIO, place: str, too_long: TooLong) -> Iterator[RawRecord]:
    """Lines that are not blank."""
    for number, start, raw in _whole_lines(stream, place, too_long):
        if raw and not raw.isspace():
            yield RawRecord(number, start, raw.rstrip(b"\r\n"))


def csv_records(stream: BinaryIO, place: str, too_long: TooLong) -> Iterator[RawRecord]:
    """Records of a csv file: lines, joined where a quoted cell continues in the next one."""
    open_lines: list[bytes] = []
    first = offset = size = 0
    for number, start, raw in _whole_lines(stream, place, too_long):
        odd = b'"' in raw and raw.count(b'"') % 2 == 1
        if not open_lines and not odd:
            if raw and not raw.isspace():
                yield RawRecord(number, start, raw.rstrip(b"\r\n"))
            continue
        if not open_lines:
            first, offset, size = number, start, 0
        open_lines.append(raw)
        size += len(raw)
        if size > MAX_LINE:
            raise too_long(place, first)
        if odd and len(open_lines) > 1:
            yield RawRecord(first, offset, b"".join(open_lines).rstrip(b"\r\n"))
            open_lines = []
    if open_lines:
        raise SourceError(
            f"expected a closing quotation mark in {place}, got none after line {first}",
            hint="write a quotation mark inside a quoted cell twice, or call it .tsv if it is",
            slug="csv-quote",
        )


def batches_of(
    records: Iterable[RawRecord], limit: int, most_bytes: float = 16e6
) -> Iterator[list[RawRecord]]:
    """Lists of at most `limit` records, and of not much more than `most_bytes` bytes."""
    batch: list[RawRecord] = []
    size = 0
    for each in records:
        batch.append(each)
        size += len(each.raw)
        if len(batch) >= limit or size >= most_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def row_too_long(place: str, number: int) -> SourceError:
    """Return the error for a line that is longer than a row can be."""
    return SourceError(
        f"expected lines of {MAX_LINE >> 20} MiB at most in {place}, got more in line {number}",
        hint="write one row per line; is this another format?",
        slug="line-too-long",
    )


def text_too_long(place: str, number: int) -> SourceError:
    """Return the error for a line that is longer than a document can be."""
    return document_too_large(f"{place}, line {number}", f"{MAX_LINE >> 20} MiB")


def _whole_lines(stream: BinaryIO, place: str, too_long: TooLong) -> Iterator[RawRecord]:
    """Lines with their ends; a byte order mark is skipped."""
    number = start = 0
    while True:
        with border(place):
            raw = stream.readline(MAX_LINE + 1)
        if not raw:
            return
        number += 1
        if len(raw) > MAX_LINE:
            raise too_long(place, number)
        if number == 1 and raw.startswith(BOM):
            raw = raw[len(BOM) :]
            start = len(BOM)
        yield RawRecord(number, start, raw)
        start += len(raw)
