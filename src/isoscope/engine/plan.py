"""The plan: made once by one worker, then a file that every worker reads.

It holds stages of units, and what all units share. A unit is a range into the plan, or a
few words, and never a list of documents. Between two stages everything is merged.
"""

from typing import Self

import msgspec
import numpy as np

from isoscope.errors import StoreError
from isoscope.types import Array

_KINDS = ("<i8", "<f8", "<u8", "<i4", "|u1")


class Unit(msgspec.Struct, frozen=True, tag=True):
    """One share of the work: small, typed, hashable, and the same on every machine."""

    @property
    def label(self) -> str:
        """What messages call it beside its number."""
        return ""


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """An array in a plan."""

    kind: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: Array) -> "Packed":
        """Pack an array of numbers."""
        whole = np.ascontiguousarray(array)
        return cls(whole.dtype.str, whole.shape, whole.tobytes())

    @property
    def array(self) -> Array:
        """The array, read-only."""
        if self.kind not in _KINDS:
            raise StoreError(
                f"expected numbers in a plan, got {self.kind!r}",
                hint="the plan is damaged: begin again with --overwrite",
                slug="store-damaged",
            )
        return np.frombuffer(self.data, dtype=self.kind).reshape(self.shape)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is done, in which shares; subclasses add what all units share."""

    stages: tuple[tuple[Unit, ...], ...]
    threads: int = 1

    def size(self, stage: int, unit: int, /) -> int | None:
        """Return how much a unit counts in progress; None where that is not known."""
        return 1

    def total(self) -> int | None:
        """Return the size of all units; None where one is not known."""
        numbers = ((s, u) for s, units in enumerate(self.stages) for u in range(len(units)))
        sizes = [self.size(stage, unit) for stage, unit in numbers]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def encode(self) -> bytes:
        """Return the plan as a file holds it."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Return the plan that a file holds."""
        try:
            return msgspec.msgpack.decode(content, type=cls)
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreError(
                f"cannot read the plan of a run: {error}",
                hint="it is damaged or from another version: begin again with --overwrite",
                slug="store-damaged",
            ) from error
