"""Streams: the format is found out, the bytes are read once and hashed on the way."""

import io
import os
import sys

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.source import open_source
from isoscope.source.bytes import StreamBytes

FORMATS = ["npy", "arrow", "jsonl", "csv", "tsv"]


class Drops(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, content, most=3):
        self.content, self.most, self.at = content, most, 0

    def read(self, count=-1):
        piece = self.content[self.at : self.at + min(count, self.most)]
        self.at += len(piece)
        return piece


@pytest.fixture
def piped(monkeypatch):
    def feed(content):
        text = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", text)
        return text

    return feed


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("drops", [False, True])
def test_every_format_that_streams_is_recognised(
    suffix, drops, tmp_path, cloud, write, whole, piped
):
    rows = cloud()
    content = write(tmp_path / f"v.{suffix}", rows).read_bytes()
    if drops:
        source = open_source(Drops(content))
    else:
        piped(content)
        source = open_source("-")
        assert source.name == "stdin" and source.place == "standard input"
    assert not source.rereadable and source.width == 4
    np.testing.assert_array_equal(whole(source, 7).astype(np.float32), rows)


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_fingerprint_is_known_after_the_pass_and_does_not_depend_on_pieces(
    suffix, tmp_path, cloud, write, whole
):
    content = write(tmp_path / f"v.{suffix}", cloud()).read_bytes()
    prints = set()
    for stream in (io.BytesIO(content), Drops(content), Drops(content, 1000)):
        source = open_source(stream)
        with pytest.raises(ValueError, match="known once it is read"):
            _ = source.fingerprint
        whole(source)
        prints.add(source.fingerprint)
    assert len(prints) == 1


def test_a_stream_is_read_once(cloud):
    source = open_source(io.BytesIO(b"1,2\n3,4\n"))
    list(source.chunks())
    with pytest.raises(SourceError, match="with a second pass") as caught:
        source.chunks()
    assert caught.value.slug == "stdin-once"


@pytest.mark.parametrize("suffix", ["parquet", "npz", "safetensors"])
def test_formats_that_need_a_file_say_so(suffix, tmp_path, cloud, write):
    content = write(tmp_path / f"v.{suffix}", cloud()).read_bytes()
    with pytest.raises(SourceError, match="expected npy, an arrow stream") as caught:
        open_source(io.BytesIO(content))
    assert "save it to a file" in caught.value.hint and caught.value.slug == "stdin-format"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "got an empty file"),
        (b"\x1f\x8babc", "got a gzip file"),
        (b"\x80\x04abc", "got a pickle"),
        (b"abc\0def", "got something else"),
        ("1,2\n".encode("utf-16"), "got UTF-16 text"),
    ],
)
def test_other_content_is_named(content, words):
    with pytest.raises(SourceError, match=words):
        open_source(io.BytesIO(content))


def test_leading_space_and_a_mark_are_looked_through(whole):
    np.testing.assert_array_equal(whole(open_source(io.BytesIO(b"\n  [1, 2]\n"))), [[1, 2]])
    content = "\ufeff[1, 2]".encode()
    np.testing.assert_array_equal(whole(open_source(io.BytesIO(content))), [[1, 2]])


def test_a_terminal_and_a_closed_input_are_refused(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for thing in (Terminal(), None):
        monkeypatch.setattr(sys, "stdin", thing)
        with pytest.raises(SourceError, match="got a terminal"):
            open_source("-")


def test_text_instead_of_bytes_is_refused():
    with pytest.raises(SourceError, match="expected bytes from the stream, got str"):
        open_source(io.StringIO("1,2\n"))


def test_an_error_of_the_system_is_one_of_ours():
    class Broken(io.RawIOBase):
        def read(self, count=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(SourceError, match="'input/output error'"):
        open_source(Broken())


def test_documents_beside_a_stream(labels):
    source = open_source(io.BytesIO(b"1,2\n3,4\n"), document=["a", "b"])
    assert labels(source)["documents"] == ["a", "b"]


def test_a_replay_starts_again_until_it_is_read_for_good():
    replay = StreamBytes(Drops(os.urandom(100)), "x", "x")
    first = replay.open(peek=True).read(40)
    assert replay.open(peek=True).read(60)[:40] == first
    stream = replay.open()
    assert stream.read()[:40] == first
    assert not replay.beginning
