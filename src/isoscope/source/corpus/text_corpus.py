"""Texts in one file: the offset of each record is kept, never its text."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isoscope.source.border import (
    BadEncodingError,
    BadRecordError,
    bad_document,
    file_changed,
)
from isoscope.source.bytes import RandomBytes
from isoscope.source.corpus.corpus import Corpus, Document, id_key
from isoscope.source.jsonl import describe_value
from isoscope.source.lines import RawRecord
from isoscope.types import Array


class TextFields(NamedTuple):
    """The values of a record that make a document."""

    text: str
    target: str | None = None
    id: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How the records of a file become documents."""

    parse: Callable[[bytes], TextFields]  # raises BadRecordError
    stamp: str  # what of the file is read, for the fingerprint
    unit: str = "line"
    empty: str = "empty documents"


class TextCorpus(Corpus):
    """Documents that are records of one file, or of a temporary copy of a stream."""

    def __init__(
        self,
        data: RandomBytes,
        records: Iterable[RawRecord],
        form: TextFormat,
        *,
        skip_bad: bool = False,
    ) -> None:
        super().__init__("text", data.name, data.place)
        self._data = data
        self._form = form
        self._index = _Index()
        ordinal = 0
        for record in records:
            ordinal += self._add(ordinal, record, skip_bad)
        self._index.close()

    def _add(self, ordinal: int, record: RawRecord, skip_bad: bool) -> bool:
        """Index a record; return whether it counts, as bad ones do, so that ids persist."""
        try:
            fields = self._form.parse(record.raw)
        except BadRecordError as error:
            place = self._place(record.number)
            if not skip_bad:
                raise bad_document(place, error) from error
            encoded = isinstance(error, BadEncodingError)
            self.dropped.add(
                "documents that are not UTF-8" if encoded else "documents that cannot be read",
                place,
            )
            return True
        if not fields.text or fields.text.isspace():
            self.dropped.add(self._form.empty, self._place(record.number))
            return False
        self._index.add(record, ordinal, fields.id)
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
        """Hashes of the ids; those of a column are stored."""
        if self._index.keys is not None:
            return np.frombuffer(self._index.keys, dtype=np.uint64)
        n = len(self)
        names = (f"{self.name}:{self._index.ordinal(at)}" for at in range(n))
        return np.fromiter(map(id_key, names), dtype=np.uint64, count=n)

    def stamp(self) -> str:
        """Compute the fingerprint of all bytes and of the columns that are read."""
        return self._data.digest(self._form.stamp)

    def _fields(self, at: int) -> TextFields:
        raw = self._data.read(*self._index.span(at))
        try:
            return self._form.parse(raw)
        except BadRecordError:  # it could be read when the corpus was opened
            raise file_changed(self.place) from None

    def _place(self, number: int) -> str:
        return f"{self.place}, {self._form.unit} {number}"


class _Index:
    """Where each document is: twelve bytes per document, more where lines were dropped."""

    def __init__(self) -> None:
        self._starts = array("Q")
        self._sizes = array("I")
        self._numbers: array[int] | None = array("Q")
        self._ordinals: array[int] | None = array("Q")
        self._first = 0
        self.keys: array[int] | None = None

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, record: RawRecord, ordinal: int, name: str | None) -> None:
        self._starts.append(record.start)
        self._sizes.append(len(record.raw))
        if self._numbers is not None and self._ordinals is not None:
            self._numbers.append(record.number)
            self._ordinals.append(ordinal)
        if name is not None:
            if self.keys is None:
                self.keys = array("Q")
            self.keys.append(id_key(name))

    def close(self) -> None:
        """Drop numbers that only count up: most files have no gaps."""
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


def text_fields(
    text: object, target: object, id: object, label: object = None, *, named: bool
) -> TextFields:
    """The fields of a record from values of any type; `named` if its id is required."""
    for value in (text, target, id, label):
        if isinstance(value, bytes):  # a column of text that is not UTF-8
            raise BadEncodingError("other bytes")
    if not isinstance(text, str):
        raise BadRecordError(describe_value(text))
    name = _id_text(id) if named else None
    return TextFields(check_unicode(text), _target_text(target), name, _label_text(label))


def check_unicode(text: str) -> str:
    """Return text that can be written as UTF-8: JSON and Python allow half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadEncodingError("half of a surrogate pair") from None
    return text


def _target_text(value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool | list | dict):
        raise BadRecordError(f"{describe_value(value)} as target")
    return check_unicode(str(value))


def _label_text(value: object) -> str | None:
    """Return a label as text; None where it is missing."""
    if value is None or value == "" or value != value:  # NaN: a gap in a data frame
        return None
    if isinstance(value, list | dict):
        raise BadRecordError(f"{describe_value(value)} as label")
    if isinstance(value, bool):
        return "true" if value else "false"
    return check_unicode(str(value))


def _id_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        got = "an empty string" if value == "" else describe_value(value)
        raise BadRecordError(f"{got} as id")
    return check_unicode(str(value))
