"""What every corpus is: documents of one kind, by ordinal, in any order, none kept."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from typing import Literal, get_args

import numpy as np

from isoscope.source.corpus.document import Document
from isoscope.source.corpus.dropped import Dropped
from isoscope.types import Array

Kind = Literal["text", "tokens", "audio", "image"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Corpus(ABC):
    """Documents that are loaded when they are asked for."""

    def __init__(self, kind: Kind, name: str, place: str, dropped: Dropped) -> None:
        self.kind: Kind = kind
        self.name = name
        self.place = place
        self.dropped = dropped

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def id(self, ordinal: int) -> str:
        """Return the name of a document: the one given, or source and ordinal."""

    @abstractmethod
    def document(self, ordinal: int) -> Document:
        """Load one document."""

    @abstractmethod
    def stamp(self) -> str:
        """Compute the fingerprint."""

    def __iter__(self) -> Iterator[Document]:
        return (self.document(ordinal) for ordinal in range(len(self)))

    @property
    def warnings(self) -> list[str]:
        """What was left out, one line for each reason."""
        return self.dropped.lines()

    @cached_property
    def fingerprint(self) -> str:
        """What tells this content from other content, wherever it lies."""
        return self.stamp()

    def keys(self) -> Array:
        """Hashes of the ids."""
        n = len(self)
        return np.fromiter((id_key(self.id(i)) for i in range(n)), dtype=np.uint64, count=n)

    def order(self, seed: int) -> Array:
        """Ordinals in an order that depends on the seed and the ids alone."""
        return np.argsort(
            _mixed(self.keys() ^ _mixed(np.uint64(int(seed) % 2**64))), kind="stable"
        )

    def within(self, ordinal: int) -> int:
        """Return an ordinal that is one, so that none counts from the end by mistake."""
        if not 0 <= ordinal < len(self):
            raise IndexError(f"{self.place} has documents 0 to {len(self) - 1}, not {ordinal}")
        return int(ordinal)


def id_key(text: str) -> int:
    """Hash of an id, the same on every machine."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _mixed(keys: Array | np.uint64) -> Array:
    """Return splitmix64 of each key: one to one, so only equal ids could tie."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is the point
        z = np.asarray(keys, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
