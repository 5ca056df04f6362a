"""The finished units of an unfinished run whose results are records: a JSON file each.

A file is written aside and renamed, and its name holds the checksum of its content: what is
there under its name is whole, and a kill at any moment loses at most the unit under way.
"""

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from isoscope.store.frontier import same_units
from isoscope.store.schema import plain_values
from isoscope.store.unit import Units

_NAME = re.compile(r"unit-(\d+)-([0-9a-f]{32})\.json")


class Ledger:
    """A folder of records, one for each unit that is done."""

    def __init__(self, folder: Path, units: Units) -> None:
        self.folder = folder
        self.units = units
        folder.mkdir(parents=True, exist_ok=True)
        same_units(folder, units)
        self.records: dict[int, Any] = {}
        for number, path, digest in self._files():
            content = path.read_bytes()
            if number < len(units) and _digest(content) == digest:
                self.records[number] = msgspec.json.decode(content)
            else:
                path.unlink()

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return [number for number in range(len(self.units)) if number not in self.records]

    def add(self, unit: int, result: Any) -> None:
        """Keep the record of a unit."""
        record = plain_values(result)
        content = msgspec.json.encode(record)
        aside = self.folder / f"{os.getpid()}-{unit}.part"
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self.folder / f"unit-{unit}-{_digest(content)}.json")
        # As it will be read back, so that a resumed run goes on with the same values.
        self.records[unit] = msgspec.json.decode(content)

    def all(self) -> list[Any]:
        """Return the records of all units, in order."""
        return [self.records[number] for number in range(len(self.units))]

    def _files(self) -> Iterator[tuple[int, Path, str]]:
        for path in sorted(self.folder.iterdir()):
            found = _NAME.fullmatch(path.name)
            if found:
                yield int(found[1]), path, found[2]


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
