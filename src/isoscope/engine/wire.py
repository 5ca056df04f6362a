"""Messages between the driver and its worker processes: small, typed, over pipes."""

import pickle
import struct
from dataclasses import dataclass, field
from io import RawIOBase
from typing import IO, Any

from isoscope.errors import IsoscopeError
from isoscope.store.tree import Node

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Open:
    """The first message to a worker: what it works on."""

    spec: Any
    plan: bytes
    scratch: str  # where units leave what survives a kill


@dataclass(frozen=True)
class Task:
    """Units of a stage, in order, of one aligned part of the merge tree."""

    stage: int
    units: tuple[int, ...]
    nodes: int  # units of the stage in all
    folder: str  # of the stage
    id: str  # of the stage
    before: str | None  # the state file of the stage before


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
    record: Any


@dataclass(frozen=True)
class Ready:
    """A worker is open, or done with its task."""


@dataclass(frozen=True)
class Failed:
    """A worker could not do its task."""

    error: bytes | None  # pickled, where that is possible
    text: str = field(default="", repr=False)  # the traceback

    @classmethod
    def of(cls, error: BaseException, text: str) -> "Failed":
        """Describe an error; one that does not survive pickling is described by its text."""
        try:
            content = pickle.dumps(error)
            same = type(pickle.loads(content)) is type(error)
        except Exception:
            same, content = False, b""
        return cls(content if same else None, text)

    def unpack(self) -> BaseException:
        """Return the error for the driver to raise; a bug with the worker's traceback."""
        error: BaseException | None = None
        if self.error is not None:
            try:
                error = pickle.loads(self.error)
            except Exception:  # of a module that only the worker has
                error = None
        if isinstance(error, IsoscopeError):
            return error
        error = error or RuntimeError("a worker failed with an error that cannot be sent")
        error.add_note(f"in a worker process:\n{self.text}")
        return error


def send(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    content = pickle.dumps(message, protocol=5)
    rest = memoryview(_LENGTH.pack(len(content)) + content)
    while rest:  # a pipe without a buffer may take a part
        rest = rest[stream.write(rest) :]
    stream.flush()


def receive(stream: RawIOBase) -> Any:
    """Read one message; EOFError where the other side has ended."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return pickle.loads(_exactly(stream, length))


def _exactly(stream: RawIOBase, length: int) -> bytearray:
    content = bytearray(length)
    rest = memoryview(content)
    while rest:
        read = stream.readinto(rest)
        if not read:
            raise EOFError
        rest = rest[read:]
    return content
