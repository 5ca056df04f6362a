"""Errors of corpora say what is there, what to do, and where to read more."""

import pytest

from isoscope.errors import SourceError, UnknownNameError
from isoscope.source import faults as fault


def test_a_missing_column_is_suggested_and_all_are_listed():
    error = fault.no_column("txt", ["id", "text", "title"], "a.jsonl")
    assert isinstance(error, UnknownNameError) and error.slug == "unknown-column"
    assert error.problem == "no column is called 'txt' in a.jsonl"
    assert error.hint == "did you mean 'text'? The columns are: id, text, title"


def test_columns_are_listed_where_none_is_near():
    error = fault.no_column("text", [f"c{i}" for i in range(20)], "a.jsonl")
    assert error.hint.startswith("--column names one of: c0, c1") and "..." in error.hint
    assert "(none)" in fault.no_column("text", [], "a").hint
    assert "\x1b" not in fault.no_column("text", ["\x1b[2J"], "a").hint


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        (fault.BadRecordError("a list"), "document-unreadable"),
        (fault.BadEncodingError("the byte 0xff"), "not-utf8"),
    ],
)
def test_a_bad_document_is_named_with_what_it_is(error, slug):
    found = fault.bad_document("a.txt, line 3", error)
    assert isinstance(found, SourceError) and found.slug == slug
    assert f"in a.txt, line 3, got {error}" in found.problem and "skip" in found.hint


def test_a_full_disk_says_where_there_may_be_room():
    error = fault.disk_full("stdin", OSError(28, "No space left on device"))
    assert error.slug == "disk-full" and "TMPDIR" in error.hint
