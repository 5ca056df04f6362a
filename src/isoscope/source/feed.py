"""Where bytes come from: a file that can be opened again, or a stream that cannot."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from isoscope.source.border import border, empty, truncated
from isoscope.source.fingerprint import of_file

BUFFER = 1 << 18


@dataclass(frozen=True, slots=True)
class Feed:
    """The bytes a reader reads.

    `open(peek)` starts at the first byte; only after a peek can a stream start there again.
    """

    name: str
    place: str
    open: Callable[[bool], BinaryIO]
    stamp: Callable[[str], str]  # the fingerprint, given the column that is read
    path: Path | None = None  # of a file, which may be mapped into memory
    rereadable: bool = True


def file_feed(path: Path, name: str, *, place: str | None = None) -> Feed:
    """The feed of a file on disk."""
    where = place or str(path)
    with border(where):
        if path.stat().st_size == 0:
            raise empty(where)
        with path.open("rb"):  # not allowed to: said now, not in the middle of a pass
            pass
    return Feed(name, where, partial(_opened, path, where), partial(of_file, path), path)


def peeked(feed: Feed, count: int) -> bytes:
    """The first bytes of a feed."""
    with border(feed.place), feed.open(True) as stream:
        return stream.read(count)


def exactly(stream: BinaryIO, count: int, place: str) -> bytes:
    """Read so many bytes, however small the pieces in which a pipe hands them out."""
    pieces: list[bytes] = []
    missing = count
    while missing:
        with border(place):
            piece = stream.read(missing)
        if not piece:
            raise truncated(place, count, count - missing)
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def fill(stream: BinaryIO, room: memoryview, place: str) -> int:
    """Read until the room is full or the stream ends; return how many bytes came."""
    done = 0
    target = cast(Any, stream)
    while done < len(room):
        with border(place):
            count = target.readinto(room[done:])
        if not count:
            break
        done += count
    return done


def _opened(path: Path, place: str, _peek: bool) -> BinaryIO:
    with border(place):
        return path.open("rb", buffering=BUFFER)
