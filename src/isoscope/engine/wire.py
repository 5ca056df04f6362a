"""Messages between the driver and its worker processes: small, typed, over pipes."""

import pickle
from contextlib import suppress
from dataclasses import field
from io import RawIOBase
from typing import IO, cast

from isoscope.dataclass import dataclass
from isoscope.engine.base import Opens
from isoscope.errors import IsoscopeError
from isoscope.store.keepers import Node

LENGTH = 8  # bytes in front of a message that say how long it is


@dataclass(frozen=True)
class Open:
    """The first message to a worker: what it works on."""

    spec: Opens
    plan: bytes
    scratch: str  # where units leave what survives a kill
    mark: "Mark | None" = None  # where the worker may be on another machine


@dataclass(frozen=True)
class Mark:
    """A file in the folder of the run, which has the key as its content."""

    path: str
    key: str


@dataclass(frozen=True)
class Assignment:
    """Units of a stage, in order, of one aligned part of the merge tree."""

    stage: int
    units: tuple[int, ...]
    nodes: int  # units of the stage in all
    folder: str  # of the stage
    id: str  # of the stage
    before: str | None  # the state file of the stage before
    files: bool = False  # records are handed over as files, as summaries always are
    name: str = ""  # of a folder below, for this assignment alone


@dataclass(frozen=True)
class At:
    """How much of a unit is done."""

    unit: int
    done: int


@dataclass(frozen=True)
class Remark:
    """Something that readers of the run should know."""

    text: str


@dataclass(frozen=True)
class Kept:
    """Nodes that were written to the folder of the stage, and the units in them."""

    nodes: tuple[tuple[Node, str], ...]
    units: tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """The record of a unit."""

    unit: int
    record: object


@dataclass(frozen=True)
class Filed:
    """The record of a unit that was written to the folder of the assignment."""

    unit: int
    name: str


@dataclass(frozen=True)
class Ready:
    """A worker is open, or done with its task."""


@dataclass(frozen=True)
class Leaving:
    """A worker ends after an error that may have left it in disorder."""


@dataclass(frozen=True)
class Failed:
    """A worker could not do a unit, or where none is named, anything."""

    error: bytes | None  # pickled, where that is possible
    text: str = field(default="", repr=False)  # the traceback
    unit: int | None = None

    @classmethod
    def of(cls, error: BaseException, text: str, unit: int | None = None) -> "Failed":
        """Describe an error; one that does not survive pickling is described by its text."""
        try:
            content = pickle.dumps(error)
            same = type(_unpickle(content)) is type(error)
        except Exception:
            same, content = False, b""
        return cls(content if same else None, text, unit)

    def unpack(self) -> BaseException:
        """Return the error for the driver to raise; a bug with the worker's traceback."""
        found: object = None
        if self.error is not None:
            with suppress(Exception):  # of a module that only the worker has
                found = _unpickle(self.error)
        if isinstance(found, IsoscopeError):
            return found
        last = self.text.strip().rpartition("\n")[2]
        error = (
            found
            if isinstance(found, BaseException)
            else RuntimeError(f"a worker failed with an error that cannot be sent: {last}")
        )
        error.add_note(f"in a worker process:\n{self.text}")
        return error


def send(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    content = pickle.dumps(message, protocol=5)
    rest = memoryview(len(content).to_bytes(LENGTH, "little") + content)
    while rest:  # a pipe without a buffer may take a part
        rest = rest[stream.write(rest) :]
    stream.flush()


def receive(stream: RawIOBase) -> object:
    """Read one message; EOFError where the other side has ended."""
    length = int.from_bytes(_exactly(stream, LENGTH), "little")
    return _unpickle(_exactly(stream, length))


def _unpickle(content: bytes | bytearray) -> object:
    return cast(object, pickle.loads(content))


def _exactly(stream: RawIOBase, length: int) -> bytearray:
    content = bytearray(length)
    rest = memoryview(content)
    while rest:
        read = stream.readinto(rest)
        if not read:
            raise EOFError
        rest = rest[read:]
    return content
