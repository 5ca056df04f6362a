"""Rows of a file mapped into memory: views, not copies, given back once they are read."""

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isoscope.source.border import border, truncated
from isoscope.source.header import Header
from isoscope.types import Array


def mapped(path: Path, header: Header, *, place: str) -> tuple[Array, mmap.mmap]:
    """The array that a header describes, as a read-only view of the file."""
    with border(place), path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(pages) < header.size:
        raise truncated(place, header.size, len(pages))
    order = "F" if header.fortran else "C"
    array = np.ndarray(header.shape, header.dtype, pages, header.offset, order=order)
    return array, pages


def mapped_blocks(
    path: Path,
    header: Header,
    limit: int,
    *,
    place: str,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[int, Array]]:
    """Blocks of the rows from `start` to `stop`, with the ordinal of their first row."""
    whole, pages = mapped(path, header, place=place)
    row = whole.nbytes // len(whole)
    stop = len(whole) if stop is None else min(stop, len(whole))
    done = (header.offset + start * row) // mmap.PAGESIZE * mmap.PAGESIZE
    for at in range(start, stop, limit):
        end = min(at + limit, stop)
        yield at, whole[at:end]
        if not header.fortran:
            done = _give_back(pages, done, header.offset + end * row)


def _give_back(pages: mmap.mmap, begin: int, end: int) -> int:
    """Unmap pages that were read, so that a process shows no more than it uses.

    They stay in the system's cache, and a view that is still held finds them again.
    """
    end = min(end, len(pages)) // mmap.PAGESIZE * mmap.PAGESIZE
    if hasattr(mmap, "MADV_DONTNEED") and end > begin:
        pages.madvise(mmap.MADV_DONTNEED, begin, end - begin)
    return max(begin, end)
