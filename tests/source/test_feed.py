"""Bytes from files and pipes."""

import io

import pytest

from isoscope.errors import SourceError
from isoscope.source.feed import exactly, file_feed, fill


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
    assert exactly(Drops(b"abcdefg"), 5, "f") == b"abcde"
    room = bytearray(5)
    assert fill(Drops(b"abcdefg"), memoryview(room), "f") == 5 and room == b"abcde"


def test_an_early_end_is_told():
    with pytest.raises(SourceError, match="expected 5 bytes in f, got 3"):
        exactly(Drops(b"abc"), 5, "f")
    assert fill(Drops(b"abc"), memoryview(bytearray(5)), "f") == 3


def test_a_file_can_be_opened_again(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("1")
    feed = file_feed(path, "v")
    for peek in (True, False, True):
        with feed.open(peek) as stream:
            assert stream.read() == b"1"
    path.unlink()
    with pytest.raises(SourceError, match="nothing of that name"):
        feed.open(False)
