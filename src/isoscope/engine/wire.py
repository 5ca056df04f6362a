"""Messages between the driver and its worker processes: small, typed, over pipes."""

import pickle
import struct
from dataclasses import dataclass, field
from typing import IO, Any

from isoscope.store.tree import Node

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Open:
    """The first message to a worker: what it works on."""

    spec: bytes  # pickled on its own: the path of modules has to be known first
    plan: bytes
    folder: str  # for files that are handed over
    threads: int


@dataclass(frozen=True)
class Task:
    """Units of a stage, in order, of one aligned part of the merge tree."""

    stage: int
    units: tuple[int, ...]
    nodes: int  # units of the stage in all
    folder: str  # of the stage
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

    error: BaseException | None  # where it can be sent
    text: str = field(default="", repr=False)  # the traceback


def send(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    content = pickle.dumps(message, protocol=5)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; EOFError where the other side has ended."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return pickle.loads(_exactly(stream, length))


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = b""
    while len(content) < length:
        part = stream.read(length - len(content))
        if not part:
            raise EOFError
        content += part
    return content
