"""Bytes with random access: of files, of streams, of packed files."""

import gzip
import io
import os
from pathlib import Path

import pytest

from isoscope.errors import SourceError
from isoscope.source import bytes as module
from isoscope.source.bytes import (
    FileBytes,
    TemporaryBytes,
    copy_stream,
    fill,
    open_bytes,
    open_text,
    read_exactly,
)

CONTENT = os.urandom(1) * 3 + bytes(range(256)) * 5000


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.bin").write_bytes(CONTENT)
    return tmp_path / "a.bin"


def test_a_file_and_a_copy_of_a_stream_read_alike(path):
    for held in (FileBytes(path), copy_stream(io.BytesIO(CONTENT), "a", "a pipe")):
        assert held.read(1000, 70) == CONTENT[1000:1070]
        with held.open() as stream:
            assert stream.read(10) == CONTENT[:10]
            assert held.read(5, 5) == CONTENT[5:10]  # without moving the stream
            assert stream.read() == CONTENT[10:]
        assert held.digest("x") == FileBytes(path).digest("x") != held.digest("y")


def test_a_file_that_changes_is_noticed(path):
    held = FileBytes(path)
    with path.open("ab") as file:
        file.write(b"more")
    for read in (lambda: held.read(0, 1), held.open):
        with pytest.raises(SourceError, match="changed") as caught:
            read()
        assert caught.value.slug == "corpus-changed"


def test_reading_past_the_end_is_a_change(path):
    with pytest.raises(SourceError, match="changed"):
        FileBytes(path).read(len(CONTENT) - 1, 2)


def test_a_file_that_is_gone_is_missing(path):
    held = FileBytes(path)
    path.unlink()
    with pytest.raises(SourceError) as caught:
        held.read(0, 1)
    assert caught.value.slug == "file-missing"


def test_pieces_are_found_where_they_were_put():
    held = TemporaryBytes("rows", "rows")
    starts = [held.append(each) for each in (b"one", b"", b"three")]
    held.finish()
    assert starts == [0, 3, 3] and held.read(3, 5) == b"three" and held.size == 8


def test_packed_files_are_unpacked_and_damage_is_named(tmp_path):
    packed = gzip.compress(CONTENT)
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    assert open_text(path, "a").read(0, len(CONTENT)) == CONTENT
    for broken in (packed[:-20], b"text" * 10, packed[:50] + b"\xff" * 50 + packed[100:]):
        path.write_bytes(broken)
        with pytest.raises(SourceError, match=r"gzip file at .*a\.gz, got damaged") as caught:
            open_text(path, "a")
        assert caught.value.slug == "file-damaged"


def test_a_packed_file_of_zeros_is_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FREE", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(1 << 24)))
    with pytest.raises(SourceError, match="more than"):
        open_text(path, "a")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_says_so():
    held = TemporaryBytes("rows", "rows")
    with Path("/dev/full").open("wb") as full:
        os.dup2(full.fileno(), held._file.fileno())
    with pytest.raises(SourceError) as caught:
        held.append(b"x" * (1 << 20))
    assert caught.value.slug == "disk-full"


class Drops(io.RawIOBase):
    def __init__(self, content):
        self.content = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, room):
        piece = self.content.read(min(2, len(room)))
        room[: len(piece)] = piece
        return len(piece)


def test_pieces_are_put_together():
    assert read_exactly(Drops(b"abcdefg"), 5, "f") == b"abcde"
    room = bytearray(5)
    assert fill(Drops(b"abcdefg"), memoryview(room), "f") == 5 and room == b"abcde"


def test_an_early_end_is_reported():
    with pytest.raises(SourceError, match="expected 5 bytes in f, got 3"):
        read_exactly(Drops(b"abc"), 5, "f")
    assert fill(Drops(b"abc"), memoryview(bytearray(5)), "f") == 3


def test_a_file_can_be_opened_again(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("1")
    feed = open_bytes(path, "v")
    for peek in (True, False, True):
        with feed.open(peek=peek) as stream:
            assert stream.read() == b"1"
    path.unlink()
    with pytest.raises(SourceError, match="nothing of that name"):
        feed.open()


def test_a_copy_that_does_not_fit_leaves_no_second_message(monkeypatch, capsys):
    class Full(io.BytesIO):
        def close(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.tempfile, "TemporaryFile", lambda **_: Full())
    held = TemporaryBytes("a", "a pipe")
    del held  # what a finalizer raises is printed with its traceback
    assert capsys.readouterr().err == ""
