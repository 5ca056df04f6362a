"""Texts that are pieces of a file: where each begins is kept, never what it says."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isoscope.source.corpus.corpus import Corpus, id_key
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.dropped import Dropped
from isoscope.source.corpus.fault import (
    BadDocumentError,
    BadEncodingError,
    bad_document,
    changed,
)
from isoscope.source.corpus.held import Held
from isoscope.source.corpus.wanted import Wanted
from isoscope.types import Array


class Piece(NamedTuple):
    """The bytes of one document, and where they are."""

    number: int  # its line or row, as messages count them
    start: int
    raw: bytes


class Fields(NamedTuple):
    """What the bytes of a document say."""

    text: str
    target: str | None = None
    id: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How pieces of a file become documents."""

    name: str
    parse: Callable[[bytes], Fields]  # raises BadDocumentError
    stamp: str  # what of the file is read, for the fingerprint
    unit: str = "line"
    empty: str = "empty documents"


class Pieces(Corpus):
    """Documents that lie in one file, or in a temporary copy of a stream."""

    def __init__(
        self, held: Held, pieces: Iterable[Piece], layout: Layout, wanted: Wanted
    ) -> None:
        super().__init__("text", layout.name, held.place, Dropped())
        self._held = held
        self._layout = layout
        self._index = _Index()
        ordinal = 0
        for piece in pieces:
            ordinal += self._take(ordinal, piece, wanted)
        self._index.close()

    def _take(self, ordinal: int, piece: Piece, wanted: Wanted) -> bool:
        """Index a piece; whether it counts, as bad ones do, so that ids outlast them."""
        try:
            fields = self._layout.parse(piece.raw)
        except BadDocumentError as error:
            place = self._place(piece.number)
            if not wanted.skip_bad:
                raise bad_document(place, error) from error
            coded = isinstance(error, BadEncodingError)
            self.dropped.add(
                "documents that are not UTF-8" if coded else "documents that cannot be read",
                place,
            )
            return True
        if not fields.text or fields.text.isspace():
            self.dropped.add(self._layout.empty, self._place(piece.number))
            return False
        self._index.add(piece, ordinal, fields.id)
        return True

    def __len__(self) -> int:
        return len(self._index)

    def id(self, ordinal: int) -> str:
        """Return the id of the column, or the name of the file and the ordinal in it."""
        at = self.within(ordinal)
        if self._index.keys is None:
            return f"{self.name}:{self._index.ordinal(at)}"
        return str(self._fields(at).id)

    def document(self, ordinal: int) -> Document:
        """Read one document."""
        at = self.within(ordinal)
        fields = self._fields(at)
        name = f"{self.name}:{self._index.ordinal(at)}" if fields.id is None else fields.id
        place = self._place(self._index.number(at))
        return Document(name, fields.text, fields.target, place=place, label=fields.label)

    def keys(self) -> Array:
        """Hashes of the ids; those out of a column are at hand."""
        if self._index.keys is not None:
            return np.frombuffer(self._index.keys, dtype=np.uint64)
        n = len(self)
        numbered = (f"{self.name}:{self._index.ordinal(at)}" for at in range(n))
        return np.fromiter(map(id_key, numbered), dtype=np.uint64, count=n)

    def stamp(self) -> str:
        """Compute the fingerprint of all bytes and of the columns that are read."""
        return self._held.stamp(self._layout.stamp)

    def _fields(self, at: int) -> Fields:
        raw = self._held.read(*self._index.span(at))
        try:
            return self._layout.parse(raw)
        except BadDocumentError:  # it could be read when the corpus was opened
            raise changed(self.place) from None

    def _place(self, number: int) -> str:
        return f"{self.place}, {self._layout.unit} {number}"


class _Index:
    """Where each document is: twelve bytes for it, more where lines were left out."""

    def __init__(self) -> None:
        self._starts = array("Q")
        self._sizes = array("I")
        self._numbers: array[int] | None = array("Q")
        self._ordinals: array[int] | None = array("Q")
        self._first = 0
        self.keys: array[int] | None = None

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, piece: Piece, ordinal: int, name: str | None) -> None:
        self._starts.append(piece.start)
        self._sizes.append(len(piece.raw))
        if self._numbers is not None and self._ordinals is not None:
            self._numbers.append(piece.number)
            self._ordinals.append(ordinal)
        if name is not None:
            if self.keys is None:
                self.keys = array("Q")
            self.keys.append(id_key(name))

    def close(self) -> None:
        """Forget numbers that only count: most files have no gaps."""
        n = len(self)
        if n and self._numbers is not None and self._numbers[-1] - self._numbers[0] == n - 1:
            self._first = self._numbers[0]
            self._numbers = None
        if n and self._ordinals is not None and self._ordinals[-1] == n - 1:
            self._ordinals = None

    def span(self, at: int) -> tuple[int, int]:
        return self._starts[at], self._sizes[at]

    def number(self, at: int) -> int:
        return at + self._first if self._numbers is None else self._numbers[at]

    def ordinal(self, at: int) -> int:
        return at if self._ordinals is None else self._ordinals[at]
