"""The keeper of records: what each unit found, as plain values, a file each.

A file is written under a temporary name and renamed, and its name holds the checksum of
its content: what is there under its name is whole, and a kill at any moment loses at most
the unit under way.
"""

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from isoscope.store.schema import plain_values

_NAME = re.compile(r"unit-(\d{1,12})-([0-9a-f]{32})\.msgpack")


class RecordKeeper:
    """One record for each unit that is done; in memory where there is no folder."""

    def __init__(self, units: int, folder: Path | None = None) -> None:
        self.units = units
        self.folder = folder
        self.records: dict[int, Any] = {}
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for number, path, digest in self._files(folder):
            content = path.read_bytes()
            if number < units and _digest(content) == digest:
                self.records[number] = msgspec.msgpack.decode(content)
            else:
                path.unlink()

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return [number for number in range(self.units) if number not in self.records]

    def add(self, unit: int, result: Any) -> None:
        """Keep the record of a unit."""
        content = msgspec.msgpack.encode(plain_values(result))
        if self.folder is not None:
            aside = self.folder / f"{os.getpid()}-{unit}.part"
            with aside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(self.folder / f"unit-{unit}-{_digest(content)}.msgpack")
        # As it is read back, so that a resumed run has the same values.
        self.records[unit] = msgspec.msgpack.decode(content)

    def flush(self) -> None:
        """Nothing waits: records are written as they come."""

    def total(self) -> list[Any]:
        """Return the records of all units, in order."""
        return [self.records[number] for number in range(self.units)]

    def close(self) -> None:
        """Nothing is left open."""

    def _files(self, folder: Path) -> Iterator[tuple[int, Path, str]]:
        for path in sorted(folder.iterdir()):
            found = _NAME.fullmatch(path.name)
            if found:
                yield int(found[1]), path, found[2]


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
