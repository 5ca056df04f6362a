"""Errors of files, records and documents; exceptions of other libraries are translated."""

import errno
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from isoscope.errors import (
    ColumnError,
    DocumentError,
    IsoscopeError,
    RowError,
    SourceError,
)
from isoscope.registry import unknown

SKIP = "--skip-bad drops and counts such documents"
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# The first bytes of formats.
NPY = b"\x93NUMPY"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
ZIP = b"PK\x03\x04"
PARQUET = b"PAR1"
BOM = b"\xef\xbb\xbf"

_KNOWN = {
    NPY: "an npy file",
    ARROW_FILE: "an arrow file",
    ARROW_STREAM: "an arrow stream",
    ZIP: "a zip archive (npz, or a torch file)",
    PARQUET: "a parquet file",
    b"FEA1": "a feather file of version 1",
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x80": "a pickle",
}


@contextmanager
def border(place: str, kind: str = "") -> Generator[None]:
    """Translate exceptions raised inside into one clear error that names the file.

    With a kind, such as "a parquet file", any exception counts as damage: zipfile and
    pyarrow raise a dozen different ones for broken input. Without it, only those of the
    operating system are translated, so that our own mistakes still show a traceback.
    """
    try:
        yield
    except IsoscopeError:
        raise
    except Exception as error:
        # pyarrow also raises OSError, without a number, for broken content.
        if isinstance(error, OSError) and (error.errno is not None or not kind):
            raise unreadable(place, error) from error
        if not kind:
            raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise damaged(place, kind, reason.rstrip(". ")) from error


def unreadable(place: str, error: OSError) -> SourceError:
    """Return the error for a missing file, a full disk, or a file without read permission."""
    if isinstance(error, FileNotFoundError):
        return SourceError(
            f"expected a file or folder at {place}, got nothing of that name",
            hint="check the spelling and the folder you are in",
            slug="file-missing",
        )
    reason = (error.strerror or str(error)).lower()
    if error.errno in DISK_FULL:  # a temporary copy does not fit
        return SourceError(
            f"cannot copy {place} with {reason!r}",
            hint="set TMPDIR to a folder with more room, or unpack it to a file yourself",
            slug="disk-full",
        )
    return SourceError(
        f"expected a readable file at {place}, got {reason!r}",
        hint="check its permissions and the disk or network it lies on",
        slug="file-unreadable",
    )


def damaged(place: str, kind: str, reason: str) -> SourceError:
    """Return the error for content that is not what it claims to be."""
    return SourceError(
        f"expected {kind} at {place}, got damaged content ({printable(reason)})",
        hint="write or copy the file again; if it has another format, give it that suffix",
        slug="file-damaged",
    )


def truncated(place: str, expected: int, got: int) -> SourceError:
    """Return the error for a file that is shorter, or longer, than its header says."""
    short = got < expected
    return SourceError(
        f"expected {expected} bytes in {place}, got {got}",
        hint="the file was cut off: write or copy it again"
        if short
        else "something follows the array: save each array in a file of its own",
        slug="file-truncated" if short else "file-trailing",
    )


def wrong_kind(place: str, expected: str, head: bytes) -> SourceError:
    """Return the error for a file whose content is of another format than its suffix."""
    return SourceError(
        f"expected {expected} at {place}, got {describe_content(head)}",
        hint="give the file the suffix of its format, or write it again",
        slug="file-kind",
    )


def empty(place: str) -> SourceError:
    """Return the error for a file or stream of no bytes."""
    return SourceError(
        f"expected vectors in {place}, got an empty file",
        hint="check the step that writes it; vectors are rows of numbers",
        slug="file-empty",
    )


def printable(text: str) -> str:
    """Text from a file, safe to print in a message: one line, no escape sequences."""
    short = text if len(text) <= 120 else f"{text[:117]}..."
    return "".join(each if each.isprintable() else "?" for each in short)


def describe_content(head: bytes) -> str:
    """What content with these first bytes looks like, in words."""
    for magic, words in _KNOWN.items():
        if head.startswith(magic):
            return words
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32:
        return "a safetensors file"
    return f"something else (it begins with {head[:8].hex(' ')})" if head else "nothing"


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
        raise BadEncodingError(f"the byte 0x{raw[error.start]:02x}", error.start) from None


def bad_row(place: str, number: int, width: int | None, error: BadRecordError) -> RowError:
    """Return the error for a line that is not a row."""
    encoded = isinstance(error, BadEncodingError)
    got = "bytes that are not UTF-8" if encoded else printable(str(error))
    return RowError(
        f"expected {width or 'a list of'} numbers in line {number} of {place}, got {got}",
        hint="write one row per line; --skip-bad drops and counts other lines",
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
    hint = f"name one with --column: {listed or '(none)'}"
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
        hint="cut it into smaller ones; text can be read a document per line: --per=line",
        slug="document-too-large",
    )
