"""The border: others' exceptions become ours, our own mistakes stay visible."""

import zipfile

import pytest

from isoscope.errors import SourceError, UnknownNameError
from isoscope.source import file_errors as fault
from isoscope.source.file_errors import (
    border,
    describe_content,
    empty,
    printable,
    truncated,
    wrong_kind,
)


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        (FileNotFoundError(2, "No such file"), "file-missing"),
        (PermissionError(13, "Permission denied"), "file-unreadable"),
        (IsADirectoryError(21, "Is a directory"), "file-unreadable"),
    ],
)
def test_errors_of_the_system_are_translated(error, slug):
    with pytest.raises(SourceError, match=r"dir/v\.npy") as caught, border("dir/v.npy"):
        raise error
    assert caught.value.slug == slug and caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [ValueError("bad\nmore"), zipfile.BadZipFile("bad"), OSError("bad."), MemoryError()],
)
def test_damage_is_named_with_its_first_line(error):
    with pytest.raises(SourceError) as caught, border("f", "an npz file"):
        raise error
    assert caught.value.problem in (
        "expected an npz file at f, got damaged content (bad)",
        "expected an npz file at f, got damaged content (MemoryError)",
    )


def test_our_own_mistakes_show_a_traceback():
    with pytest.raises(KeyError), border("f"):
        raise KeyError("bug")


def test_errors_of_ours_pass_unchanged():
    error = empty("f")
    with pytest.raises(SourceError) as caught, border("g", "an npz file"):
        raise error
    assert caught.value is error


def test_words_out_of_a_file_cannot_break_the_line_or_the_terminal():
    assert printable("a\nb\x1b[31m") == "a?b?[31m"
    assert len(printable("é" * 1000)) == 120


def test_too_short_and_too_long_differ():
    assert truncated("f", 10, 9).slug == "file-truncated"
    assert truncated("f", 10, 11).slug == "file-trailing"


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"\x93NUMPY\x01", "an npy file"),
        (b"PAR1", "a parquet file"),
        (b"PK\x03\x04", "a zip archive (npz, or a torch file)"),
        (b"\x20\0\0\0\0\0\0\0{", "a safetensors file"),
        (b"hello", "something else (it begins with 68 65 6c 6c 6f)"),
        (b"", "nothing"),
    ],
)
def test_content_is_described(head, words):
    assert describe_content(head) == words


def test_the_error_names_both():
    error = wrong_kind("v.npy", "an npy file", b"PAR1")
    assert error.problem == "expected an npy file at v.npy, got a parquet file"


def test_a_missing_column_is_suggested_and_all_are_listed():
    error = fault.no_column("txt", ["id", "text", "title"], "a.jsonl")
    assert isinstance(error, UnknownNameError) and error.slug == "unknown-column"
    assert error.problem == "no column is called 'txt' in a.jsonl"
    assert error.hint == "did you mean 'text'? The columns are: id, text, title"


def test_columns_are_listed_where_none_is_near():
    error = fault.no_column("text", [f"c{i}" for i in range(20)], "a.jsonl")
    assert error.hint.startswith("name one with --column: c0, c1") and "..." in error.hint
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
    error = fault.unreadable("stdin", OSError(28, "No space left on device"))
    assert error.slug == "disk-full" and "TMPDIR" in error.hint
