"""Lines and csv records with numbers and offsets, and rows of vectors parsed from them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BufferedReader, RawIOBase
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.bytes import ByteSource
from isoscope.source.columns import add_labels
from isoscope.source.file_errors import (
    BOM,
    BadRecordError,
    bad_row,
    border,
    document_too_large,
)
from isoscope.source.row_source import (
    DECODED_BYTES,
    PassCounts,
    Role,
    RowSource,
    VectorRequest,
    rows_per_chunk,
)
from isoscope.types import Chunk

MAX_LINE = 64 << 20  # bytes


class RawRecord(NamedTuple):
    """The bytes of one line or record, without the end of the line."""

    number: int  # of its first line, counted from 1 as editors do
    start: int  # offset in the file
    raw: bytes


TooLong = Callable[[str, int], SourceError]  # from a place and the number of a line


def read_lines(
    stream: BinaryIO, place: str, too_long: TooLong, *, blank: bool = True
) -> Iterator[RawRecord]:
    """All lines, or without `blank` those that hold something."""
    for number, start, raw in _whole_lines(stream, place, too_long):
        if blank or (raw and not raw.isspace()):
            yield RawRecord(number, start, raw.rstrip(b"\r\n"))


filled_lines = partial(read_lines, blank=False)


def csv_records(stream: BinaryIO, place: str, too_long: TooLong) -> Iterator[RawRecord]:
    """Records of a csv file: lines, joined where a quoted cell continues in the next one."""
    stream = _as_buffered(stream)
    passed = 0  # ends of lines inside quoted cells
    grown = 0  # their bytes
    for number, start, raw in _whole_lines(cast(BinaryIO, stream), place, too_long):
        first, offset, record = number + passed, start + grown, raw
        if raw.count(b'"') % 2:
            record = _close_quotes(stream, raw, place, first, too_long)
            passed += record.count(b"\n") - raw.count(b"\n")
            grown += len(record) - len(raw)
        if record and not record.isspace():
            yield RawRecord(first, offset, record.rstrip(b"\r\n"))


def _close_quotes(
    stream: BufferedReader, raw: bytes, place: str, first: int, too_long: TooLong
) -> bytes:
    """Return a line with what follows up to the end of the line that closes its quotes.

    From quotation mark to quotation mark: a cell of many lines is not read line by line.
    """
    record = bytearray(raw)
    quoted = True
    with border(place):
        while quoted:
            piece = _through_quote(stream, MAX_LINE + 1 - len(record))
            if not piece:
                raise _never_closed(place, first)
            record += piece
            if piece.endswith(b'"'):
                rest = stream.readline(MAX_LINE + 1 - len(record))
                record += rest
                quoted = rest.count(b'"') % 2 == 1
            if len(record) > MAX_LINE:
                raise too_long(place, first)
    return bytes(record)


def _never_closed(place: str, first: int) -> SourceError:
    return SourceError(
        f"expected a closing quotation mark in {place}, got none after line {first}",
        hint="write a quotation mark inside a quoted cell twice, or call it .tsv if it is",
        slug="csv-quote",
    )


def _through_quote(stream: BufferedReader, most: int) -> bytes:
    """Read up to and including the next quotation mark, or less; nothing at the end."""
    seen = stream.peek(1)
    return stream.read(min(most, seen.find(b'"') + 1 or len(seen)))


def _as_buffered(stream: BinaryIO) -> BufferedReader:
    if isinstance(stream, BufferedReader):
        return stream
    return BufferedReader(cast(RawIOBase, stream))  # of bytes in memory


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


def line_source(
    data: ByteSource,
    request: VectorRequest,
    width: int,
    column: str,  # that is read, for the fingerprint
    records: Callable[[BinaryIO], Iterator[RawRecord]],
    parse: ParseRow,
) -> RowSource:
    """The rows of a file or stream of lines."""
    most = rows_per_chunk(width, "float64", DECODED_BYTES)

    def read(limit: int, counts: PassCounts, _start: int, _stop: int | None) -> Iterator[Chunk]:
        start = 0
        with data.open() as stream:
            for batch in batches_of(records(stream), min(limit, most)):
                yield parse_batch(batch, start, counts)
                start += len(batch)

    def parse_batch(batch: Sequence[RawRecord], start: int, counts: PassCounts) -> Chunk:
        rows = np.empty((len(batch), width))
        kept: list[int] = []
        labels: dict[Role, list[object]] = {role: [] for role in request.roles}
        for index, record in enumerate(batch):
            try:
                vector, found = parse(record.raw)
                if len(vector) != width:
                    raise BadRecordError(f"{len(vector)}")
                if "document" in labels and found.get("document") is None:
                    raise BadRecordError("no document")
            except BadRecordError as error:
                if not request.skip_bad:
                    raise bad_row(data.place, record.number, width, error) from error
                counts.skipped += 1
                continue
            rows[len(kept)] = vector
            kept.append(index)
            for role, values in labels.items():
                values.append(found.get(role))
        ordinals = None if len(kept) == len(batch) else start + np.array(kept, dtype=np.int64)
        chunk = Chunk(rows[: len(kept)], data.name, start, place=data.place, ordinals=ordinals)
        return add_labels(chunk, labels)

    return RowSource(
        name=data.name,
        width=width,
        rows=None,
        rereadable=data.rereadable,
        dtype="float64",
        place=data.place,
        read=read,
        stamp=lambda: data.stamp(column),
        has_documents=request.document is not None,
        drops=request.skip_bad,
    )
