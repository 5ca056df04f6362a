"""Errors of records and documents, and the exceptions that carry what is wrong with one."""

import errno
from collections.abc import Iterable

from isoscope.errors import (
    ColumnError,
    DocumentError,
    IsoscopeError,
    RowError,
    SourceError,
)
from isoscope.registry import unknown
from isoscope.source.border import printable

SKIP = "--skip-bad (in Python skip_bad=True) drops and counts such documents"
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class BadRecordError(Exception):
    """A record cannot be used; the message says what was found instead."""


class BadEncodingError(BadRecordError):
    """A record is not UTF-8."""

    def __init__(self, got: str, at: int = 0) -> None:
        super().__init__(got)
        self.at = at  # offset of the first bad byte


def decode_utf8(raw: bytes) -> str:
    """Decode text, or raise an error that names the first byte that is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"the byte 0x{raw[error.start]:02x}"
        raise BadEncodingError(byte, error.start) from None


def bad_row(place: str, number: int, width: int | None, error: BadRecordError) -> RowError:
    """Return the error for a line that is not a row."""
    encoded = isinstance(error, BadEncodingError)
    got = "bytes that are not UTF-8" if encoded else printable(str(error))
    return RowError(
        f"expected {width or 'a list of'} numbers in line {number} of {place}, got {got}",
        hint="write one row per line; --skip-bad (skip_bad=True) drops and counts other lines",
        slug="row-not-a-vector",
    )


def bad_document(place: str, error: BadRecordError) -> DocumentError:
    """Return the error for a document that cannot be read; the place includes its line."""
    if isinstance(error, BadEncodingError):
        return DocumentError(
            f"expected UTF-8 text in {place}, got {error}",
            hint=f"convert it, for example with iconv -f latin1 -t utf-8; {SKIP}",
            slug="not-utf8",
        )
    return DocumentError(
        f"expected a text in {place}, got {error}", hint=SKIP, slug="document-unreadable"
    )


def no_documents(place: str, found: str = "none") -> SourceError:
    """Return the error for a corpus without documents."""
    return SourceError(
        f"expected documents in {place}, got {found}",
        hint="check the step that writes it; a document must not be empty",
        slug="corpus-empty",
    )


def no_column(name: str, names: Iterable[str], place: str) -> IsoscopeError:
    """Return the error for a missing column, with the names of those that exist."""
    known = [printable(each) for each in names]
    error = unknown("column", printable(name), known)
    listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    hint = f"--column names one of: {listed or '(none)'}"
    if error.hint.startswith("did you mean"):
        hint = f"{error.hint} The columns are: {listed}"
    return type(error)(f"{error.problem} in {place}", hint=hint, slug=error.slug)


def refuse_columns(place: str, names: Iterable[str]) -> None:
    """Refuse names of columns where the content has no columns."""
    for name in names:
        raise ColumnError(
            f"cannot take a column from {place} with none in it: {name!r}",
            hint="omit it; jsonl, parquet, csv and tsv have columns",
            slug="no-columns",
        )


def file_changed(place: str) -> SourceError:
    """Return the error for a file that changed after it was opened."""
    return SourceError(
        f"expected {place} as it was when it was opened, got a changed file",
        hint="wait until nothing writes to it, and start again",
        slug="corpus-changed",
    )


def document_too_large(place: str, most: str) -> DocumentError:
    """Return the error for one document that would not fit into memory."""
    return DocumentError(
        f"expected documents of {most} at most, got more in {place}",
        hint="cut it into smaller ones; text can be read a document per line: --per line",
        slug="document-too-large",
    )


def disk_full(place: str, error: OSError) -> SourceError:
    """Return the error for a temporary copy that did not fit."""
    return SourceError(
        f"cannot copy {place} with {(error.strerror or str(error)).lower()!r}",
        hint="set TMPDIR to a folder with more room, or unpack it to a file yourself",
        slug="disk-full",
    )
