"""The errors that all corpora share."""

import errno
from collections.abc import Iterable

from isoscope.errors import ColumnError, DocumentError, IsoscopeError, SourceError
from isoscope.registry import unknown
from isoscope.source.border import shown

SKIP = "--skip-bad (in Python skip_bad=True) drops and counts such documents"
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
MAX_DOCUMENT = 64 << 20  # bytes of text


class BadDocumentError(Exception):
    """A document cannot be read; the message says what is there instead."""


class BadEncodingError(BadDocumentError):
    """A document is not UTF-8."""

    def __init__(self, got: str, at: int = 0) -> None:
        super().__init__(got)
        self.at = at  # how many bytes of the document come before


def nothing(place: str, found: str = "none") -> SourceError:
    """Return the error for a corpus without documents."""
    return SourceError(
        f"expected documents in {place}, got {found}",
        hint="check the step that writes it; a document has to hold something",
        slug="corpus-empty",
    )


def bad_document(place: str, error: BadDocumentError) -> DocumentError:
    """Return the error for a document that cannot be read; the place has its line."""
    if isinstance(error, BadEncodingError):
        return DocumentError(
            f"expected UTF-8 text in {place}, got {error}",
            hint=f"convert it, as with iconv -f latin1 -t utf-8; {SKIP}",
            slug="not-utf8",
        )
    return DocumentError(
        f"expected a text in {place}, got {error}", hint=SKIP, slug="document-unreadable"
    )


def no_column(name: str, names: Iterable[str], place: str) -> IsoscopeError:
    """Return the error for a column that is not there, with those that are."""
    known = [shown(each) for each in names]
    error = unknown("column", shown(name), known)
    listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    hint = f"--column names one of: {listed or '(none)'}"
    if error.hint.startswith("did you mean"):
        hint = f"{error.hint} The columns are: {listed}"
    return type(error)(f"{error.problem} in {place}", hint=hint, slug=error.slug)


def columns_given(place: str, name: str) -> ColumnError:
    """Return the error for the name of a column where there are no columns."""
    return ColumnError(
        f"cannot take a column from {place} with none in it: {name!r}",
        hint="leave it out; jsonl, parquet, csv and tsv have columns",
        slug="no-columns",
    )


def changed(place: str) -> SourceError:
    """Return the error for a file that is another than when it was opened."""
    return SourceError(
        f"expected {place} as it was when it was opened, got a changed file",
        hint="wait until nothing writes to it, and start again",
        slug="corpus-changed",
    )


def too_large(place: str, most: str, got: str) -> DocumentError:
    """Return the error for one document that would not fit into memory."""
    return DocumentError(
        f"expected documents of {most} at most, got {got} in {place}",
        hint="cut it into smaller ones; text can be read a document per line: --per line",
        slug="document-too-large",
    )


def no_space(place: str, error: OSError) -> SourceError:
    """Return the error for a temporary copy that did not fit."""
    return SourceError(
        f"cannot copy {place} with {(error.strerror or str(error)).lower()!r}",
        hint="set TMPDIR to a folder with more room, or unpack it to a file yourself",
        slug="disk-full",
    )
