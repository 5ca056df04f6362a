"""The keeper of records: what each unit found, as plain values, a file each.

A file is written under a temporary name and renamed, and its name holds a checksum of its
content, its unit and the run: what is there under its name is whole and of this run, and a
kill at any moment loses at most the unit under way.
"""

# pyright: reportUnknownArgumentType=error, reportUnknownLambdaType=error
# pyright: reportUnknownMemberType=error, reportUnknownParameterType=error
# pyright: reportUnknownVariableType=error, reportAny=error, reportExplicitAny=error

import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from isoscope.store.schema import plain_values
from isoscope.store.writing import write_whole, writing

_NAME = re.compile(r"unit-(\d{1,12})-([0-9a-f]{32})\.msgpack")


class RecordKeeper:
    """One record for each unit that is done; in memory where there is no folder."""

    def __init__(self, units: int, folder: Path | None = None, *, id: str = "") -> None:
        self.units = units
        self.folder = folder
        self.id = id
        self.records: dict[int, object] = {}
        if folder is not None:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                self._load(folder)

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return [number for number in range(self.units) if number not in self.records]

    def add(self, unit: int, result: object) -> None:
        """Keep the record of a unit."""
        content = msgspec.msgpack.encode(plain_values(result))
        if self.folder is not None:
            name = f"unit-{unit}-{self._digest(unit, content)}.msgpack"
            with writing(self.folder):
                write_whole(self.folder / name, content)
        # As it is read back, so that a resumed run has the same values.
        self.records[unit] = msgspec.msgpack.decode(content)

    def flush(self) -> None:
        """Nothing waits: records are written as they come."""

    def total(self) -> list[object]:
        """Return the records of all units, in order."""
        return [self.records[number] for number in range(self.units)]

    def _load(self, folder: Path) -> None:
        for number, path, digest in _record_files(folder):
            content = path.read_bytes()
            if number < self.units and self._digest(number, content) == digest:
                self.records[number] = msgspec.msgpack.decode(content)
            else:
                path.unlink()

    def _digest(self, unit: int, content: bytes) -> str:
        label = f"{self.id} {unit} ".encode()
        return blake2b(label + content, digest_size=16).hexdigest()


def _record_files(folder: Path) -> Iterator[tuple[int, Path, str]]:
    """Yield units with their files; remove what a process that was killed left half-written."""
    for path in sorted(folder.iterdir()):
        found = _NAME.fullmatch(path.name)
        if not path.is_file():
            continue
        if found:
            yield int(found[1]), path, found[2]
        elif path.suffix == ".part":
            with suppress(OSError):
                path.unlink()
