"""Streams that can be read once: standard input, a pipe, an open binary file."""

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any, BinaryIO, cast

from isoscope.errors import SourceError
from isoscope.source.arrow import open_arrow
from isoscope.source.border import border, empty
from isoscope.source.csv import open_csv
from isoscope.source.feed import Feed
from isoscope.source.jsonl import open_jsonl
from isoscope.source.magic import ARROW_FILE, ARROW_STREAM, NPY, described
from isoscope.source.npy import open_npy
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Chunk

PEEK = 4096
PLACE = "standard input"


def open_stdin(wanted: Wanted, name: str | None = None) -> Source:
    """The rows that come on standard input."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise SourceError(
            f"expected vectors on {PLACE}, got a terminal",
            hint="pipe them in: cat vectors.npy | isoscope measure -",
            slug="stdin-terminal",
        )
    return open_stream(sys.stdin.buffer, wanted, name or "stdin", PLACE)


def open_stream(stream: BinaryIO, wanted: Wanted, name: str, place: str) -> Source:
    """The rows of a stream, in the format that its first bytes show."""
    replay = Replay(stream, place)
    feed = Feed(name, place, replay.open, replay.stamp, rereadable=False)
    with replay.open(True) as peek:
        head = peek.read(PEEK)
    source = _opener(head, place)(feed, wanted)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        yield from source.read(limit, tally)
        replay.drain()

    return replace(source, read=read, live=True)


def _opener(head: bytes, place: str) -> Callable[[Feed, Wanted], Source]:
    if not head:
        raise empty(place)
    if head.startswith(NPY):
        return open_npy
    if head.startswith((ARROW_STREAM, ARROW_FILE)):
        return open_arrow
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"[", b"{"):
        return open_jsonl
    if b"\0" in head or not described(head).startswith("something"):
        raise SourceError(
            f"expected npy, an arrow stream, jsonl or csv on {place}, got {described(head)}",
            hint="save it to a file and give its path",
            slug="stdin-format",
        )
    return open_csv


class Replay:
    """A stream whose beginning can be read again, until it is read for good.

    Everything that passes is hashed, since there is no second look for a fingerprint.
    """

    def __init__(self, stream: BinaryIO, place: str) -> None:
        self._pull = cast(Callable[[int], Any], getattr(stream, "read1", stream.read))
        self._place = place
        self._digest = blake2b(digest_size=16)
        self._size = 0
        self._ended = False
        self._drained = False
        self._keeping = True
        self.head = bytearray()

    def open(self, peek: bool) -> BinaryIO:
        """Start at the first byte; without `peek` for the last time."""
        self._keeping = peek
        return cast(BinaryIO, io.BufferedReader(_View(self), 1 << 16))

    def stamp(self, column: str) -> str:
        """The fingerprint of all that has passed, once the stream has ended."""
        if not self._drained:
            raise ValueError(f"the fingerprint of {self._place} is known once it is read")
        whole = self._digest.copy()
        whole.update(f"{self._size}\0{column}".encode("utf-8", "surrogatepass"))
        return whole.hexdigest()

    def drain(self) -> None:
        """Read what is left, so that the fingerprint does not depend on buffers."""
        while self.pull(1 << 16):
            pass
        self._drained = True

    def pull(self, count: int) -> bytes:
        """Take fresh bytes from the stream, at most so many."""
        with border(self._place):
            piece = b"" if self._ended else self._pull(count)
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise SourceError(
                f"expected bytes from {self._place}, got {type(piece).__name__}",
                hint="open the file in binary mode: open(path, 'rb')",
                slug="not-binary",
            )
        self._ended = not piece
        self._digest.update(piece)
        self._size += len(piece)
        if self._keeping:
            self.head += piece
        return bytes(piece)

    def release(self) -> None:
        """Forget the beginning once it has been read for good."""
        if not self._keeping:
            self.head = bytearray()


class _View(io.RawIOBase):
    """A reader of a replay, from its first byte on."""

    def __init__(self, replay: Replay) -> None:
        super().__init__()
        self._replay = replay
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        head = self._replay.head
        if self._at < len(head):
            piece = bytes(memoryview(head)[self._at : self._at + len(room)])
        else:
            self._replay.release()
            piece = self._replay.pull(len(room))
        self._at += len(piece)
        room[: len(piece)] = piece
        return len(piece)
