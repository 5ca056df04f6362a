"""The border: others' exceptions become ours, our own mistakes stay visible."""

import zipfile

import pytest

from isoscope.errors import SourceError
from isoscope.source.border import border, empty, shown, truncated


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
    assert shown("a\nb\x1b[31m") == "a?b?[31m"
    assert len(shown("é" * 1000)) == 120


def test_too_short_and_too_long_differ():
    assert truncated("f", 10, 9).slug == "file-truncated"
    assert truncated("f", 10, 11).slug == "file-trailing"
