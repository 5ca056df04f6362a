"""Lines and csv records with numbers and offsets, and rows of vectors parsed from them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.border import (
    BOM,
    BadRecordError,
    bad_row,
    border,
    document_too_large,
)
from isoscope.source.bytes import ByteSource
from isoscope.source.request import Role, VectorRequest
from isoscope.source.row_labels import label_chunk
from isoscope.source.row_source import PassCounts, RowSource
from isoscope.source.shape import DECODED_BYTES, rows_per_chunk
from isoscope.types import Chunk

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


def _whole_lines(
    stream: BinaryIO, place: str, too_long: TooLong
) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of lines with their ends; a byte order mark is skipped."""
    number = start = 0
    with border(place):
        while raw := stream.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                raise too_long(place, number)
            if number == 1 and raw.startswith(BOM):
                raw = raw[len(BOM) :]
                start = len(BOM)
            yield number, start, raw
            start += len(raw)


Labels = dict[Role, object]
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
    labels: dict[Role, list[object]] = {role: [] for role in lines.roles}
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
