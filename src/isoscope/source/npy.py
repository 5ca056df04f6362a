"""npy: one array, mapped into memory from a file or streamed from a pipe or zip member."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from isoscope.errors import ColumnError, SourceError
from isoscope.source.border import border, truncated
from isoscope.source.feed import Feed, fill
from isoscope.source.header import Header, read_header
from isoscope.source.mapped import mapped_blocks
from isoscope.source.shape import CHUNK_BYTES, matrix, numeric, plain
from isoscope.source.source import Seek, Source, Tally, Wanted
from isoscope.types import Array, Chunk

MAX_TURNED = 64 << 20  # a stream in Fortran order has to be held whole


def open_npy(feed: Feed, wanted: Wanted) -> Source:
    """The rows of an npy file or stream."""
    no_columns(wanted, feed.place)
    with feed.open(True) as stream:
        header = read_header(stream, feed.place)
    numeric(header.dtype, feed.place)
    n, d = matrix(header.shape, feed.place)
    if feed.path is not None:
        with border(feed.place):
            size = feed.path.stat().st_size
        if size != header.size:
            raise truncated(feed.place, header.size, size)

    def read(
        limit: int, _tally: Tally, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        blocks = (
            streamed_blocks(feed, header, limit)
            if feed.path is None
            else mapped_blocks(
                feed.path, header, limit, place=feed.place, start=start, stop=stop
            )
        )
        for at, block in blocks:
            yield Chunk(plain(block), feed.name, at, place=feed.place)

    return Source(
        feed.name, d, n, feed.rereadable, header.dtype.name, feed.place, read,
        lambda: feed.stamp(""),
        seek=None if feed.path is None or header.fortran else Seek(range(n), read),
    )  # fmt: skip


def no_columns(wanted: Wanted, place: str) -> None:
    """Refuse the names of columns where there is but one array."""
    if wanted.column is not None:
        raise ColumnError(
            f"cannot take a column from {place} with one array in it: {wanted.column!r}",
            hint="leave the column out",
            slug="no-columns",
        )
    for name in wanted.labels:
        raise ColumnError(
            f"expected a path to a one-dimensional npy beside {place}, got {name!r}",
            hint="an array has no columns: save the labels with np.save and give that path",
            slug="no-columns",
        )


def streamed_blocks(feed: Feed, header: Header, limit: int) -> Iterator[tuple[int, Array]]:
    """Blocks of rows read one after another, for bytes that cannot be mapped."""
    with feed.open(False) as stream:
        read_header(stream, feed.place)
        yield from blocks_of(stream, header, limit, feed.place)
        if stream.read(1):
            raise truncated(feed.place, header.size, header.size + 1)


def blocks_of(
    stream: BinaryIO, header: Header, limit: int, place: str
) -> Iterator[tuple[int, Array]]:
    """Blocks of an array whose header has been read; short content is an error."""
    n, d = header.shape
    whole = n * d * header.dtype.itemsize
    if header.fortran and n > 1 and d > 1:
        if whole > MAX_TURNED:
            raise SourceError(
                f"cannot stream {place} with its array in Fortran order",
                hint="save np.ascontiguousarray(rows), or an npy file and give its path",
                slug="fortran-stream",
            )
        turned = _next(stream, (d, n), header, 0, place)
        yield from ((at, turned.T[at : at + limit]) for at in range(0, n, limit))
        return
    limit = min(limit, max(1, int(CHUNK_BYTES * 4 // (d * header.dtype.itemsize))))
    for start in range(0, n, limit):
        yield start, _next(stream, (min(limit, n - start), d), header, start, place)


def _next(
    stream: BinaryIO, shape: tuple[int, int], header: Header, start: int, place: str
) -> Array:
    block = np.empty(shape, dtype=header.dtype)
    got = fill(stream, block.reshape(-1).view(np.uint8).data, place)
    if got < block.nbytes:
        row = header.dtype.itemsize * header.shape[1]
        raise truncated(place, header.size, header.offset + start * row + got)
    return block
