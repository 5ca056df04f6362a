"""Lines of text, of bounded length, with their numbers; and csv records made of them."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from isoscope.errors import SourceError
from isoscope.source.border import border

MAX_LINE = 64 << 20
BOM = b"\xef\xbb\xbf"

Line = tuple[int, bytes]  # its number, counted from 1 as editors do


def lines(stream: BinaryIO, place: str) -> Iterator[Line]:
    """Lines that are not blank, without their line ends."""
    number = 0
    while True:
        with border(place):
            raw = stream.readline(MAX_LINE + 1)
        if not raw:
            return
        number += 1
        if len(raw) > MAX_LINE:
            raise too_long(place, number)
        if number == 1:
            raw = raw.removeprefix(BOM)
        if not raw.isspace() and raw:
            yield number, raw.rstrip(b"\r\n")


def records(numbered: Iterable[Line], place: str) -> Iterator[Line]:
    """Records of a csv file: lines, joined where a quoted cell goes on in the next one."""
    begun: list[bytes] = []
    first = size = 0
    for number, line in numbered:
        odd = b'"' in line and line.count(b'"') % 2 == 1
        if not begun and not odd:
            yield number, line
            continue
        if not begun:
            first, size = number, 0
        begun.append(line)
        size += len(line)
        if size > MAX_LINE:
            raise too_long(place, first)
        if odd and len(begun) > 1:
            yield first, b"\n".join(begun)
            begun = []
    if begun:
        raise SourceError(
            f"expected a closing quotation mark in {place}, got none after line {first}",
            hint="write a quotation mark inside a quoted cell twice",
            slug="csv-quote",
        )


def batched(
    numbered: Iterable[Line], limit: int, most_bytes: float = 16e6
) -> Iterator[list[Line]]:
    """Lines in lists of at most so many, and of not much more than so many bytes."""
    batch: list[Line] = []
    size = 0
    for each in numbered:
        batch.append(each)
        size += len(each[1])
        if len(batch) >= limit or size >= most_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def too_long(place: str, number: int) -> SourceError:
    """Return the error for a line that is more than a row can be."""
    return SourceError(
        f"expected lines of {MAX_LINE >> 20} MiB at most in {place}, got more in line {number}",
        hint="write one row a line; is this another format?",
        slug="line-too-long",
    )
