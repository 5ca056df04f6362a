"""Texts in one file: the offset of each record is kept, never its text."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from isoscope.hashing import text_key
from isoscope.source.border import (
    BadEncodingError,
    BadRecordError,
    bad_document,
    file_changed,
)
from isoscope.source.bytes import RandomBytes
from isoscope.source.corpus.corpus import Corpus, Document
from isoscope.source.jsonl import describe_value
from isoscope.source.lines import RawRecord
from isoscope.types import Array


class TextFields(NamedTuple):
    """The values of a record that make a document."""

    text: str
    target: str | None = None
    id: str | None = None
    label: str | None = None


class TextCorpus(Corpus):
    """Documents that are records of one file, or of a temporary copy of a stream."""

    def __init__(
        self,
        data: RandomBytes,
        records: Iterable[RawRecord],
        parse: Callable[[bytes], TextFields],  # raises BadRecordError
        stamp: str,  # what of the file is read, for the fingerprint
        *,
        unit: str = "line",
        empty: str = "empty documents",
        skip_bad: bool = False,
    ) -> None:
        super().__init__("text", data.name, data.place)
        self._data = data
        self._parse = parse
        self._stamp = stamp
        self._unit = unit
        self._starts = array("Q")
        self._sizes = array("I")
        self._keys = array("Q")  # of ids, where a column has them
        numbers = array("Q")
        ordinals = array("Q")
        ordinal = 0
        for record in records:
            try:
                fields = parse(record.raw)
            except BadRecordError as error:
                place = self._place(record.number)
                if not skip_bad:
                    raise bad_document(place, error) from error
                encoded = isinstance(error, BadEncodingError)
                what = "that are not UTF-8" if encoded else "that cannot be read"
                self.dropped.add(f"documents {what}", place)
                ordinal += 1  # bad ones count, so that ids persist
                continue
            if not fields.text or fields.text.isspace():
                self.dropped.add(empty, self._place(record.number))
                continue
            self._starts.append(record.start)
            self._sizes.append(len(record.raw))
            numbers.append(record.number)
            ordinals.append(ordinal)
            if fields.id is not None:
                self._keys.append(int(text_key(fields.id)))
            ordinal += 1
        self._numbers = _compact(numbers)
        self._ordinals = _compact(ordinals)

    def __len__(self) -> int:
        return len(self._starts)

    def id(self, ordinal: int) -> str:
        """Return the id of the column, or the name of the file and the ordinal in it."""
        at = self.within(ordinal)
        return str(self._fields(at).id) if self._keys else f"{self.name}:{self._ordinals[at]}"

    def document(self, ordinal: int) -> Document:
        """Read one document."""
        at = self.within(ordinal)
        fields = self._fields(at)
        name = f"{self.name}:{self._ordinals[at]}" if fields.id is None else fields.id
        place = self._place(self._numbers[at])
        return Document(name, fields.text, fields.target, place=place, label=fields.label)

    def keys(self) -> Array:
        """Hashes of the ids; those of a column are stored."""
        return np.frombuffer(self._keys, dtype=np.uint64) if self._keys else super().keys()

    def stamp(self) -> str:
        """Compute the fingerprint of all bytes and of the columns that are read."""
        return self._data.digest(self._stamp)

    def _fields(self, at: int) -> TextFields:
        raw = self._data.read(self._starts[at], self._sizes[at])
        try:
            return self._parse(raw)
        except BadRecordError:  # it could be read when the corpus was opened
            raise file_changed(self.place) from None

    def _place(self, number: int) -> str:
        return f"{self.place}, {self._unit} {number}"


def _compact(counted: "array[int]") -> Sequence[int]:
    """Ascending numbers, as a range if none is missing: most files have no gaps."""
    n = len(counted)
    if n and counted[-1] - counted[0] == n - 1:
        return range(counted[0], counted[0] + n)
    return counted


def text_fields(
    text: object, target: object, id: object, label: object = None, *, named: bool
) -> TextFields:
    """The fields of a record from values of any type; `named` if its id is required."""
    for value in (text, target, id, label):
        if isinstance(value, bytes):  # a column of text that is not UTF-8
            raise BadEncodingError("other bytes")
    if not isinstance(text, str):
        raise BadRecordError(describe_value(text))
    if named and (isinstance(id, bool) or not isinstance(id, str | int) or id == ""):
        got = "an empty string" if id == "" else describe_value(id)
        raise BadRecordError(f"{got} as id")
    if isinstance(target, bool):
        raise BadRecordError(f"{describe_value(target)} as target")
    if isinstance(label, bool):
        label = "true" if label else "false"
    elif label != label:  # NaN: a gap in a data frame
        label = None
    return TextFields(
        check_unicode(text),
        _text_of(target, "target"),
        check_unicode(str(id)) if named else None,
        _text_of(label, "label"),
    )


def check_unicode(text: str) -> str:
    """Return text that can be written as UTF-8: JSON and Python allow half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadEncodingError("half of a surrogate pair") from None
    return text


def _text_of(value: object, role: str) -> str | None:
    """Return a target or label as text; None where it is missing."""
    if value is None or value == "":
        return None
    if isinstance(value, list | dict):
        raise BadRecordError(f"{describe_value(value)} as {role}")
    return check_unicode(str(value))
