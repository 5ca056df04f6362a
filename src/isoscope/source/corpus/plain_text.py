"""Plain text: a document per line, per file or per entry of a list; and the bundled text."""

from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import cast

from isoscope.errors import DocumentError, SourceError
from isoscope.source.border import (
    BOM,
    BadEncodingError,
    BadRecordError,
    bad_document,
    border,
    decode_utf8,
    describe_content,
    document_too_large,
    refuse_columns,
)
from isoscope.source.bytes import (
    FileBytes,
    RandomBytes,
    TemporaryBytes,
    copy_stream,
    open_text,
)
from isoscope.source.corpus.corpus import Corpus, CorpusRequest, Document, FileCorpus
from isoscope.source.corpus.text_corpus import (
    TextCorpus,
    TextFields,
    check_unicode,
)
from isoscope.source.fingerprint import of_parts
from isoscope.source.lines import RawRecord, read_lines, text_too_long

HEAD = 4096
MAX_DOCUMENT = 64 << 20  # bytes
LIST = "the list of texts"
BUNDLED = "the bundled text"


def open_lines(data: RandomBytes, request: CorpusRequest) -> TextCorpus:
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
    )


def open_default(request: CorpusRequest) -> TextCorpus:
    """The bundled text, public-domain speeches and plays, a document per line."""
    text = files("isoscope.source.corpus") / "bundled" / "text.txt"
    with as_file(text) as path:
        if path == text:  # a plain file; from a zipped package it is deleted after this block
            return open_lines(FileBytes(path, "bundled", BUNDLED), request)
        with path.open("rb") as stream:
            copy = copy_stream(stream, "bundled", BUNDLED)
    return open_lines(copy, request)


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
