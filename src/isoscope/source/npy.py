"""npy: one array behind a header, mapped from a file or streamed from a pipe or zip member.

The header is read without eval and without trusting a number in it.
"""

import mmap
import re
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import ColumnError, SourceError
from isoscope.source.bytes import ByteSource, fill, read_exactly
from isoscope.source.file_errors import NPY, border, damaged, truncated, wrong_kind
from isoscope.source.row_source import (
    CHUNK_BYTES,
    PassCounts,
    RowSource,
    VectorRequest,
    check_matrix,
    check_numeric,
    plain_rows,
)
from isoscope.types import Array, Chunk

KIND = "an npy file"
MAX_HEADER = 10_000  # NumPy's own limit
IN_USE = 3  # blocks that may still be worked on when the next one is read
MAX_TURNED = 64 << 20  # a stream in Fortran order is read whole into memory


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """Shape and type of an array, and where its numbers begin."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fortran: bool
    offset: int  # bytes before the numbers

    @property
    def size(self) -> int:
        """Bytes of header and numbers together."""
        return self.offset + prod(self.shape) * self.dtype.itemsize


def read_header(stream: BinaryIO, place: str) -> ArrayHeader:
    """Read an npy header; the stream is left at the first number."""
    with border(place):
        head = stream.read(8)
    if head[:6] != NPY:
        raise _pickle(place) if head[:1] == b"\x80" else wrong_kind(place, KIND, head)
    if len(head) < 8 or head[6] not in (1, 2, 3):
        raise damaged(place, KIND, f"version {head[6:8].hex(' ')}")
    digits = 2 if head[6] == 1 else 4
    length = int.from_bytes(read_exactly(stream, digits, place), "little")
    if length > MAX_HEADER:
        raise damaged(place, KIND, f"a header of {length} bytes")
    text = read_exactly(stream, length, place).decode("latin-1")
    return ArrayHeader(*_parse_header(text, place), offset=8 + digits + length)


def _pickle(place: str) -> SourceError:
    return SourceError(
        f"expected an array of numbers in {place}, got a pickle",
        hint="pickles can run code and are not opened: save with np.save, allow_pickle=False",
        slug="pickle",
    )


def _parse_header(text: str, place: str) -> tuple[tuple[int, ...], np.dtype[np.generic], bool]:
    shape = re.search(r"['\"]shape['\"]\s*:\s*\(([\d,\sL]{0,600})\)", text)
    order = re.search(r"['\"]fortran_order['\"]\s*:\s*(True|False)", text)
    descr = re.search(r"['\"]descr['\"]\s*:\s*(\[|['\"]([^'\"]{1,40})['\"])", text)
    if not (shape and order and descr):
        raise damaged(place, KIND, "a header without shape, order or type")
    if descr[1] == "[":
        raise SourceError(
            f"expected real numbers in {place}, got a structured array",
            hint="save one field as a plain two-dimensional array",
            slug="dtype-unsupported",
        )
    sizes = [each.strip().rstrip("L") for each in shape[1].split(",") if each.strip()]
    if any(not each.isdigit() or len(each) > 19 for each in sizes):
        raise damaged(place, KIND, f"the shape ({shape[1]})")
    try:
        # NumPy accepts far more in such a string: lists, commas, names of Python types.
        if not re.fullmatch(r"[<>|=]?[A-Za-z?]\d{0,9}(\[\w{1,8}\])?", descr[2]):
            raise ValueError
        dtype = np.dtype(descr[2])
    except (TypeError, ValueError) as error:
        raise damaged(place, KIND, f"the type {descr[2]!r}") from error
    if dtype.hasobject:
        raise _pickle(place)
    return tuple(int(each) for each in sizes), dtype, order[1] == "True"


def check_size(path: Path, header: ArrayHeader, place: str) -> None:
    """Refuse a file that is shorter or longer than its header says."""
    with border(place):
        size = path.stat().st_size
    if size != header.size:
        raise truncated(place, header.size, size)


def map_array(path: Path, header: ArrayHeader, *, place: str) -> tuple[Array, mmap.mmap]:
    """The array that a header describes, as a read-only view of the file."""
    with border(place), path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(pages) < header.size:
        raise truncated(place, header.size, len(pages))
    order = "F" if header.fortran else "C"
    return np.ndarray(header.shape, header.dtype, pages, header.offset, order=order), pages


def map_blocks(
    path: Path,
    header: ArrayHeader,
    limit: int,
    *,
    place: str,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[int, Array]]:
    """Blocks of the rows from `start` to `stop`, with the ordinal of their first row."""
    whole, pages = map_array(path, header, place=place)
    row = whole.nbytes // len(whole)
    stop = len(whole) if stop is None else min(stop, len(whole))
    done = (header.offset + start * row) // mmap.PAGESIZE * mmap.PAGESIZE
    for at in range(start, stop, limit):
        yield at, whole[at : min(at + limit, stop)]
        # Unmap pages that were read, so that the memory of a process does not grow: those of
        # blocks that are no longer worked on, since to map a page again takes as long as to
        # copy it. A view that is still in use finds them in the system's cache.
        end = max(at + limit - IN_USE * limit, start)
        read = min(header.offset + end * row, len(pages)) // mmap.PAGESIZE * mmap.PAGESIZE
        if not header.fortran and hasattr(mmap, "MADV_DONTNEED") and read > done:
            pages.madvise(mmap.MADV_DONTNEED, done, read - done)
            done = read


def open_npy(data: ByteSource, request: VectorRequest) -> RowSource:
    """The rows of an npy file or stream."""
    refuse_column(request, data.place)
    path, place = data.path, data.place
    with data.open(peek=True) as stream:
        header = read_header(stream, place)
    check_numeric(header.dtype, place)
    n, d = check_matrix(header.shape, place)
    if path is not None:
        check_size(path, header, place)

    def blocks(limit: int, start: int, stop: int | None) -> Iterator[tuple[int, Array]]:
        if path is not None:
            yield from map_blocks(path, header, limit, place=place, start=start, stop=stop)
            return
        with data.open() as stream:
            read_header(stream, place)
            yield from read_blocks(stream, header, limit, place)
            if stream.read(1):
                raise truncated(place, header.size, header.size + 1)

    def read(limit: int, _counts: PassCounts, start: int, stop: int | None) -> Iterator[Chunk]:
        for at, block in blocks(limit, start, stop):
            yield Chunk(plain_rows(block), data.name, at, place=place)

    return RowSource(
        name=data.name,
        width=d,
        rows=n,
        rereadable=data.rereadable,
        dtype=header.dtype.name,
        place=place,
        read=read,
        stamp=lambda: data.stamp(""),
        starts=(0,) if path is None or header.fortran else range(n),
    )


def refuse_column(request: VectorRequest, place: str) -> None:
    """Refuse the names of columns where there is only one array."""
    if request.column is not None:
        raise ColumnError(
            f"cannot take a column from {place} with one array in it: {request.column!r}",
            hint="omit the column",
            slug="no-columns",
        )
    for name in request.roles.values():
        raise ColumnError(
            f"expected a path to a one-dimensional npy beside {place}, got {name!r}",
            hint="an array has no columns: save the labels with np.save and pass that path",
            slug="no-columns",
        )


def read_blocks(
    stream: BinaryIO, header: ArrayHeader, limit: int, place: str
) -> Iterator[tuple[int, Array]]:
    """Blocks of an array whose header has been read; short content is an error."""
    n, d = header.shape
    if header.fortran and n > 1 and d > 1:
        if n * d * header.dtype.itemsize > MAX_TURNED:
            raise SourceError(
                f"cannot stream {place} with its array in Fortran order",
                hint="save np.ascontiguousarray(rows), or an npy file and pass its path",
                slug="fortran-stream",
            )
        turned = _next_block(stream, (d, n), header, 0, place)
        yield from ((at, turned.T[at : at + limit]) for at in range(0, n, limit))
        return
    limit = min(limit, max(1, int(CHUNK_BYTES * 4 // (d * header.dtype.itemsize))))
    for start in range(0, n, limit):
        yield start, _next_block(stream, (min(limit, n - start), d), header, start, place)


def _next_block(
    stream: BinaryIO, shape: tuple[int, int], header: ArrayHeader, start: int, place: str
) -> Array:
    block = np.empty(shape, dtype=header.dtype)
    got = fill(stream, block.reshape(-1).view(np.uint8).data, place)
    if got < block.nbytes:
        row = header.dtype.itemsize * header.shape[1]
        raise truncated(place, header.size, header.offset + start * row + got)
    return block
