"""Documents of text: records of one file, files, lists of texts, and the bundled text.

Of each record of a file the offset is kept, never its text.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from isoscope.errors import DocumentError, SourceError
from isoscope.hashing import HEAD as HASHED
from isoscope.hashing import text_key
from isoscope.source.bytes import (
    RandomBytes,
    TemporaryBytes,
    copy_stream,
    of_parts,
    open_text,
)
from isoscope.source.corpus.corpus import (
    Corpus,
    CorpusRequest,
    Document,
    FileCorpus,
    text_digest,
)
from isoscope.source.file_errors import (
    BOM,
    BadEncodingError,
    BadRecordError,
    bad_document,
    border,
    decode_utf8,
    describe_content,
    document_too_large,
    file_changed,
    refuse_columns,
)
from isoscope.source.jsonl import describe_value
from isoscope.source.lines import RawRecord, read_lines, text_too_long
from isoscope.types import Array

HEAD = 4096
MAX_DOCUMENT = 64 << 20  # bytes
LIST = "the list of texts"
BUNDLED = "the bundled text"


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
        by_name: bool = False,  # documents are known by the name of the file
    ) -> None:
        super().__init__("text", data.name, data.place)
        self._by_name = by_name
        self._data = data
        self._parse = parse
        self._stamp = stamp
        self._unit = unit
        self._starts = array("Q")
        self._sizes = array("I")
        self._keys = array("Q")  # of ids, where a column has them
        self._digests = array("Q")  # of texts, where none has
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
                bad = (
                    "are not UTF-8" if isinstance(error, BadEncodingError) else "cannot be read"
                )
                self.dropped.add(f"documents that {bad}", place)
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
            else:
                self._digests.append(int(text_digest(fields.text)))
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

    @property
    def has_ids(self) -> bool:
        """Whether a column has ids, or the file has a name that never changes."""
        return bool(self._keys) or self._by_name

    def id_keys(self) -> Array:
        """Hashes of the ids; those of a column are stored."""
        return np.frombuffer(self._keys, dtype=np.uint64) if self._keys else super().id_keys()

    def digests(self) -> Array:
        """Hashes of the first bytes of each text."""
        return np.frombuffer(self._digests, dtype=np.uint64)

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


def open_lines(
    data: RandomBytes, request: CorpusRequest, *, by_name: bool = False
) -> TextCorpus:
    """The lines of a text file; empty ones are dropped and counted."""
    refuse_columns(data.place, request.columns)
    check_text(data)
    return TextCorpus(
        data,
        text_lines(data),
        _parse_text,
        "line",
        empty="empty lines",
        skip_bad=request.skip_bad,
        by_name=by_name,
    )


def open_default(request: CorpusRequest) -> TextCorpus:
    """The bundled text, public-domain speeches and plays, a document per line."""
    text = files("isoscope.source.corpus") / "bundled" / "text.txt"
    with text.open("rb") as stream:  # a file, or a member of a zipped package
        copy = copy_stream(cast(BinaryIO, stream), "bundled", BUNDLED)
        # By name, as ever: documented numbers are of the documents that these ids draw.
        return open_lines(copy, request, by_name=True)


def open_whole(data: TemporaryBytes, request: CorpusRequest) -> TextCorpus:
    """All of a stream as one document."""
    text = read_whole(data)
    raw = data.read(0, data.size)
    skip = len(raw) - len(raw.removeprefix(BOM))
    records = [RawRecord(1, skip, raw[skip:])] if text else []
    return TextCorpus(data, records, _parse_text, "file")


class TextFiles(FileCorpus):
    """Text files, each one document; empty ones are dropped and counted."""

    def __init__(
        self, paths: Sequence[Path], root: Path | None, request: CorpusRequest
    ) -> None:
        super().__init__("text", paths, root, request)

    def check(self, path: Path) -> str | None:
        """Drop a file that holds nothing but blanks."""
        return None if read_text(path).strip() else "empty files"

    def head(self, path: Path) -> bytes:
        """Return the first bytes of a text, unpacked and without a mark of its encoding."""
        return open_text(path, path.name).head(len(BOM) + HASHED).removeprefix(BOM)

    def document(self, ordinal: int) -> Document:
        """Read one file."""
        path = self.path(ordinal)
        return Document(self.id(ordinal), read_text(path), place=str(path))


class TextList(Corpus):
    """A list of texts in memory; the list is referenced, not copied."""

    def __init__(self, texts: Sequence[str], request: CorpusRequest) -> None:
        super().__init__("text", "memory", LIST)
        refuse_columns(LIST, request.columns)
        self._texts = texts
        self._kept: list[int] = []
        for i, text in enumerate(texts):
            place = f"{LIST}, entry {i}"
            if not isinstance(cast(object, text), str):
                raise SourceError(
                    f"expected a text in entry {i} of the list, got {type(text).__name__}",
                    hint="pass a list of strings, or the path of a file or folder",
                    slug="corpus-kind",
                )
            try:
                blank = not check_unicode(text).strip()
            except BadRecordError as error:
                if not request.skip_bad:
                    raise bad_document(place, error) from error
                self.dropped.add("documents that cannot be read", place)
                continue
            if blank:
                self.dropped.add("empty documents", place)
            else:
                self._kept.append(i)

    def __len__(self) -> int:
        return len(self._kept)

    def id(self, ordinal: int) -> str:
        """Return the name of all lists, and the index in this one."""
        return f"{self.name}:{self._kept[self.within(ordinal)]}"

    def document(self, ordinal: int) -> Document:
        """Return one text."""
        at = self._kept[self.within(ordinal)]
        return Document(self.id(ordinal), self._texts[at], place=f"{LIST}, entry {at}")

    def stamp(self) -> str:
        """Compute the fingerprint of all texts."""
        return of_parts(self._texts[at] for at in self._kept)


def text_lines(data: RandomBytes) -> Iterator[RawRecord]:
    """All lines, blank ones included."""
    with border(data.place), data.open() as stream:
        yield from read_lines(stream, data.place, text_too_long)


def read_text(path: Path) -> str:
    """The text of a file, unpacked if it is a gzip file."""
    return read_whole(open_text(path, path.name))


def read_whole(data: RandomBytes) -> str:
    """All bytes, as text."""
    check_text(data)
    with border(data.place), data.open() as stream:
        raw = stream.read(MAX_DOCUMENT + 1).removeprefix(BOM)
    if len(raw) > MAX_DOCUMENT:
        raise document_too_large(data.place, f"{MAX_DOCUMENT >> 20} MiB")
    try:
        return decode_utf8(raw)
    except BadEncodingError as error:
        line = raw[: error.at].count(b"\n") + 1
        raise bad_document(f"{data.place}, line {line}", error) from None


def check_text(data: RandomBytes) -> None:
    """Refuse content that is not text at all, before line 1 is reported for it."""
    head = data.head(HEAD)
    if not is_text(head):
        raise DocumentError(
            f"expected text in {data.place}, got {describe_content(head)}",
            hint="text is UTF-8; for other content pass --kind=tokens, --kind=audio or "
            "--kind=image",
            slug="corpus-kind",
        )


def is_text(head: bytes) -> bool:
    """Whether the first bytes could be UTF-8 text, or text in a similar encoding."""
    return b"\0" not in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _parse_text(raw: bytes) -> TextFields:
    return TextFields(decode_utf8(raw))
