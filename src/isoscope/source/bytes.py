"""Bytes that can be read anywhere, not only in order: of a file, or of a temporary copy."""

import gzip
import os
import tempfile
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from isoscope.source.border import border, damaged
from isoscope.source.corpus.fault import FULL, changed, no_space

PIECE = 1 << 18
FREE = 1 << 30  # what may be unpacked from a file of any size
RATIO = 200  # beyond that; text shrinks to a third, and only zeros to a thousandth


class Held(ABC):
    """Bytes with random access; nothing is kept in memory."""

    place: str

    @abstractmethod
    def open(self) -> BinaryIO:
        """Start at the first byte."""

    @abstractmethod
    def read(self, start: int, count: int) -> bytes:
        """Read so many bytes from there; fewer are an error."""

    def stamp(self, asked: str = "") -> str:
        """Fingerprint of all bytes, and of what is asked of them."""
        digest = blake2b(f"{asked}\0".encode("utf-8", "surrogatepass"), digest_size=16)
        with border(self.place), self.open() as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
        return digest.hexdigest()


class OnDisk(Held):
    """A file, opened for each read: no handle to leak, or to share with another process."""

    def __init__(self, path: Path, place: str | None = None) -> None:
        self.path = path
        self.place = place or str(path)
        with border(self.place), path.open("rb") as file:
            self._seen = _state(file)

    def open(self) -> BinaryIO:
        """Start at the first byte."""
        return self._opened()

    def read(self, start: int, count: int) -> bytes:
        """Read so many bytes from there."""
        with border(self.place), self._opened(0) as file:
            piece = os.pread(file.fileno(), count, start)
        if len(piece) < count:
            raise changed(self.place)
        return piece

    def _opened(self, buffering: int = PIECE) -> BinaryIO:
        with border(self.place):
            file: BinaryIO = self.path.open("rb", buffering=buffering)
            if _state(file) != self._seen:
                file.close()
                raise changed(self.place)
        return file


class Spooled(Held):
    """A temporary file without a name: it is gone when the process is."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.size = 0
        with border(place):
            self._file = tempfile.TemporaryFile(buffering=PIECE)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def append(self, piece: bytes) -> int:
        """Write at the end; return where the piece begins."""
        start = self.size
        try:
            self._file.write(piece)
        except OSError as error:
            raise self._fault(error) from error
        self.size += len(piece)
        return start

    def finish(self) -> None:
        """Write out what is buffered, after which everything can be read."""
        try:
            self._file.flush()
        except OSError as error:
            raise self._fault(error) from error

    def open(self) -> BinaryIO:
        """Start at the first byte."""
        descriptor = os.dup(self._file.fileno())
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.fdopen(descriptor, "rb", PIECE)

    def read(self, start: int, count: int) -> bytes:
        """Read so many bytes from there."""
        with border(self.place):
            return os.pread(self._file.fileno(), count, start)

    def _fault(self, error: OSError) -> Exception:
        return no_space(self.place, error) if error.errno in FULL else error


def spooled(stream: BinaryIO, place: str) -> Spooled:
    """Copy a stream that can be read once."""
    held = Spooled(place)
    while True:
        with border(place):
            piece = stream.read(PIECE)
        if not piece:
            break
        held.append(piece)
    held.finish()
    return held


def unpacked(path: Path) -> Spooled:
    """Unpack a gzip file; one that would unpack to far more than text does is refused."""
    place = str(path)
    held = Spooled(place)
    with border(place):
        most = max(FREE, path.stat().st_size * RATIO)
    for piece in unpacked_pieces(path):
        if held.size + len(piece) > most:
            raise damaged(place, "a gzip file", f"more than {most} bytes in it")
        held.append(piece)
    held.finish()
    return held


def unpacked_pieces(path: Path) -> Iterator[bytes]:
    """The content of a gzip file, piece by piece."""
    place = str(path)
    with border(place), path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as stream:
        while True:
            try:
                piece = stream.read(PIECE)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise damaged(place, "a gzip file", str(error)) from error
            if not piece:
                return
            yield piece


def _state(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
