"""Units of work: what each has to do, and a name that follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from isoscope.store.schema import plain_values


@dataclass(frozen=True, slots=True)
class Unit:
    """A share of a run that is done whole or not at all."""

    number: int
    task: dict[str, Any]  # plain values: which documents, how they are batched, which model

    @property
    def id(self) -> str:
        """A name that follows from the task, so that equal work has an equal name."""
        return address(self.task)


def address(value: Any) -> str:
    """Return the content address of plain values: the same for the same content."""
    text = msgspec.json.encode(plain_values(value), order="sorted")
    return blake2b(text, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Units:
    """All units of a run, in their order; the id of the list follows from theirs."""

    units: tuple[Unit, ...]

    @classmethod
    def of(cls, tasks: Sequence[dict[str, Any]]) -> "Units":
        """Number tasks in the order given."""
        return cls(tuple(Unit(number, task) for number, task in enumerate(tasks)))

    @property
    def id(self) -> str:
        """A name for this very list of units."""
        return address([unit.id for unit in self.units])

    def encoded(self) -> bytes:
        """The manifest: the id of the list, and of each unit its id and its task."""
        listed = [{"id": unit.id, "task": plain_values(unit.task)} for unit in self.units]
        return msgspec.json.encode({"id": self.id, "units": listed})

    def __len__(self) -> int:
        return len(self.units)
