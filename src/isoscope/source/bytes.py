"""Bytes of a file, of a temporary copy or of a stream, and fingerprints that recognise them."""

import gzip
import io
import os
import tempfile
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, TypeAlias, cast

from isoscope.errors import SourceError
from isoscope.source.file_errors import border, damaged, empty, file_changed, truncated

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PAGE = 4096  # bytes that enter a fingerprint together
PAGES = 64  # evenly spaced, besides the first and the last
PIECE = 1 << 18
FREE = 1 << 30  # bytes that may be unpacked from a file of any size
RATIO = 200  # beyond that; text shrinks to a third, and only zeros to a thousandth


class ByteSource(ABC):
    """Bytes with a name for ids and a place for messages."""

    rereadable = True

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self.place = place
        self.path: Path | None = None  # of a file, which may be mapped into memory

    @abstractmethod
    def open(self, *, peek: bool = False) -> BinaryIO:
        """Start at the first byte; only after a peek can a stream start there again."""

    def stamp(self, column: str) -> str:
        """Return the fingerprint of the content and of the column that is read."""
        return self.digest(column)

    def head(self, count: int) -> bytes:
        """Return the first bytes."""
        with border(self.place), self.open(peek=True) as stream:
            return stream.read(count)

    def digest(self, extra: str = "") -> str:
        """Return a hash of all bytes, and of how they are read."""
        digest = blake2b(f"{extra}\0".encode("utf-8", "surrogatepass"), digest_size=16)
        with border(self.place), self.open() as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
        return digest.hexdigest()


class FileBytes(ByteSource):
    """A file, opened for each read: no handle to leak, or to share with another process."""

    def __init__(self, path: Path, name: str | None = None, place: str | None = None) -> None:
        super().__init__(path.stem if name is None else name, place or str(path))
        self.path = self._path = path
        with border(self.place), path.open("rb") as file:  # permissions are checked now
            self._state = _file_state(file)

    def open(self, *, peek: bool = False) -> BinaryIO:
        """Start at the first byte of a file that must not have changed."""
        with border(self.place):
            file = self._path.open("rb", buffering=PIECE)
            if _file_state(file) != self._state:
                file.close()
                raise file_changed(self.place)
        return file

    def read(self, start: int, count: int) -> bytes:
        """Read `count` bytes from `start`; fewer are an error."""
        with border(self.place), self.open() as file:
            piece = os.pread(file.fileno(), count, start)
        if len(piece) < count:
            raise file_changed(self.place)
        return piece

    def stamp(self, column: str) -> str:
        """Return the fingerprint of a sample of the pages."""
        return of_file(self._path, column)


class TemporaryBytes(ByteSource):
    """A temporary file without a name: it disappears with the process."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(name, place)
        self.size = 0
        with border(place):
            self._file = tempfile.TemporaryFile(buffering=PIECE)  # noqa: SIM115
        weakref.finalize(self, _close, self._file)

    def append(self, piece: bytes) -> int:
        """Write at the end; return the offset at which the piece begins."""
        start = self.size
        with border(self.place):
            self._file.write(piece)
        self.size += len(piece)
        return start

    def finish(self) -> None:
        """Flush the buffer, after which everything can be read."""
        with border(self.place):
            self._file.flush()

    def open(self, *, peek: bool = False) -> BinaryIO:
        """Start at the first byte."""
        descriptor = os.dup(self._file.fileno())
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.fdopen(descriptor, "rb", PIECE)

    def read(self, start: int, count: int) -> bytes:
        """Read `count` bytes from `start`."""
        with border(self.place):
            return os.pread(self._file.fileno(), count, start)


def _close(file: IO[bytes]) -> None:
    """Close a temporary file; what did not fit on the disk is no longer of interest."""
    with suppress(OSError):
        file.close()


RandomBytes: TypeAlias = FileBytes | TemporaryBytes  # can be read at any offset


class StreamBytes(ByteSource):
    """A stream whose beginning can be read again, until it is read for the last time.

    Everything that passes is hashed, because the fingerprint cannot read it again.
    """

    rereadable = False

    def __init__(self, stream: BinaryIO, name: str, place: str) -> None:
        super().__init__(name, place)
        self._pull = cast(Callable[[int], object], getattr(stream, "read1", stream.read))
        self._digest = blake2b(digest_size=16)
        self._size = 0
        self._ended = False
        self._drained = False
        self._keep = True
        self.beginning = bytearray()

    def open(self, *, peek: bool = False) -> BinaryIO:
        """Start at the first byte; without `peek` for the last time."""
        self._keep = peek
        return cast(BinaryIO, io.BufferedReader(_StreamReader(self), 1 << 16))

    def stamp(self, column: str) -> str:
        """Return the fingerprint of everything that has passed, once the stream has ended."""
        if not self._drained:
            raise ValueError(f"the fingerprint of {self.place} is known once it is read")
        whole = self._digest.copy()
        whole.update(f"{self._size}\0{column}".encode("utf-8", "surrogatepass"))
        return whole.hexdigest()

    def drain(self) -> None:
        """Read the rest, so that the fingerprint does not depend on buffers."""
        while self.pull(1 << 16):
            pass
        self._drained = True

    def pull(self, count: int) -> bytes:
        """Take at most `count` new bytes from the stream."""
        with border(self.place):
            piece = b"" if self._ended else self._pull(count)
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise SourceError(
                f"expected bytes from {self.place}, got {type(piece).__name__}",
                hint="open the file in binary mode: open(path, 'rb')",
                slug="not-binary",
            )
        self._ended = not piece
        self._digest.update(piece)
        self._size += len(piece)
        if self._keep:
            self.beginning += piece
        return bytes(piece)

    def release(self) -> None:
        """Free the beginning once it has been read for the last time."""
        if not self._keep:
            self.beginning = bytearray()


class _StreamReader(io.RawIOBase):
    """A reader of a stream from its first byte."""

    def __init__(self, stream: StreamBytes) -> None:
        super().__init__()
        self._stream = stream
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        room = memoryview(buffer)
        beginning = self._stream.beginning
        if self._at < len(beginning):
            piece = bytes(memoryview(beginning)[self._at : self._at + len(room)])
        else:
            self._stream.release()
            piece = self._stream.pull(len(room))
        self._at += len(piece)
        room[: len(piece)] = piece
        return len(piece)


def open_bytes(path: Path, name: str) -> FileBytes:
    """The bytes of a file of vectors, which must not be empty."""
    source = FileBytes(path, name)
    if path.stat().st_size == 0:
        raise empty(source.place)
    return source


def copy_stream(stream: BinaryIO, name: str, place: str) -> TemporaryBytes:
    """Copy a stream that can be read once."""
    copy = TemporaryBytes(name, place)
    with border(place):
        while piece := stream.read(PIECE):
            copy.append(piece)
    copy.finish()
    return copy


def open_text(path: Path, name: str) -> FileBytes | TemporaryBytes:
    """The bytes of a text file, unpacked if it is a gzip file.

    A gzip file that would unpack to far more than text does is refused.
    """
    if path.suffix.lower() != ".gz":
        return FileBytes(path, name)
    place = str(path)
    copy = TemporaryBytes(name, place)
    with border(place):
        most = max(FREE, path.stat().st_size * RATIO)
    for piece in gzip_pieces(path):
        if copy.size + len(piece) > most:
            raise damaged(place, "a gzip file", f"more than {most} bytes in it")
        copy.append(piece)
    copy.finish()
    return copy


def gzip_pieces(path: Path) -> Iterator[bytes]:
    """The content of a gzip file, piece by piece."""
    place = str(path)
    with border(place), path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as stream:
        try:
            while piece := stream.read(PIECE):
                yield piece
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise damaged(place, "a gzip file", str(error)) from error


def read_exactly(stream: BinaryIO, count: int, place: str) -> bytes:
    """Read `count` bytes, however small the pieces that a pipe returns."""
    room = bytearray(count)
    got = fill(stream, memoryview(room), place)
    if got < count:
        raise truncated(place, count, got)
    return bytes(room)


def fill(stream: BinaryIO, room: memoryview, place: str) -> int:
    """Read until the room is full or the stream ends; return the number of bytes read."""
    done = 0
    target = cast(io.BufferedReader, stream)
    with border(place):
        while done < len(room) and (count := target.readinto(room[done:])):
            done += count
    return done


def _file_state(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def of_file(path: Path, column: str = "") -> str:
    """Fingerprint of a file: its size, first and last page, and pages in between.

    The column that is read is part of it: two arrays of one npz are two collections.
    """
    digest = _new_digest(column)
    with border(str(path)), path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(f"{size}\0".encode())
        for offset in spread(size, PAGE):
            file.seek(offset)
            digest.update(file.read(PAGE))
    return digest.hexdigest()


def of_parts(parts: Iterable[str | bytes], column: str = "") -> str:
    """Fingerprint of a few pieces: those of a folder's files, or a sample of an array."""
    digest = _new_digest(column)
    for part in parts:
        piece = part.encode() if isinstance(part, str) else part
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def spread(size: int, step: int) -> list[int]:
    """Offsets of pieces of length `step`: all of them if few, else spread evenly."""
    if size <= (PAGES + 2) * step:
        return list(range(0, size, step))
    last = size - step
    return [last * k // (PAGES + 1) for k in range(PAGES + 2)]


def _new_digest(column: str) -> "blake2b":
    return blake2b(f"{column}\0".encode("utf-8", "surrogatepass"), digest_size=16)
