"""Bytes with random access: of files, of streams, of packed files."""

import gzip
import io
import os
from pathlib import Path

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import held as module
from isoscope.source.corpus.held import OnDisk, Spooled, spooled, unpacked

CONTENT = os.urandom(1) * 3 + bytes(range(256)) * 5000


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.bin").write_bytes(CONTENT)
    return tmp_path / "a.bin"


def test_a_file_and_a_copy_of_a_stream_read_alike(path):
    for held in (OnDisk(path), spooled(io.BytesIO(CONTENT), "a pipe")):
        assert held.read(1000, 70) == CONTENT[1000:1070]
        with held.open() as stream:
            assert stream.read(10) == CONTENT[:10]
            assert held.read(5, 5) == CONTENT[5:10]  # without moving the stream
            assert stream.read() == CONTENT[10:]
        assert held.stamp("x") == OnDisk(path).stamp("x") != held.stamp("y")


def test_a_file_that_changes_is_noticed(path):
    held = OnDisk(path)
    with path.open("ab") as file:
        file.write(b"more")
    for read in (lambda: held.read(0, 1), held.open):
        with pytest.raises(SourceError, match="changed") as caught:
            read()
        assert caught.value.slug == "corpus-changed"


def test_reading_past_the_end_is_a_change(path):
    with pytest.raises(SourceError, match="changed"):
        OnDisk(path).read(len(CONTENT) - 1, 2)


def test_a_file_that_is_gone_is_missing(path):
    held = OnDisk(path)
    path.unlink()
    with pytest.raises(SourceError) as caught:
        held.read(0, 1)
    assert caught.value.slug == "file-missing"


def test_pieces_are_found_where_they_were_put():
    held = Spooled("rows")
    starts = [held.append(each) for each in (b"one", b"", b"three")]
    held.finish()
    assert starts == [0, 3, 3] and held.read(3, 5) == b"three" and held.size == 8


def test_packed_files_are_unpacked_and_damage_is_named(tmp_path):
    packed = gzip.compress(CONTENT)
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    assert unpacked(path).read(0, len(CONTENT)) == CONTENT
    for broken in (packed[:-20], b"text" * 10, packed[:50] + b"\xff" * 50 + packed[100:]):
        path.write_bytes(broken)
        with pytest.raises(SourceError, match=r"gzip file at .*a\.gz, got damaged") as caught:
            unpacked(path)
        assert caught.value.slug == "file-damaged"


def test_a_packed_file_of_zeros_is_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FREE", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(1 << 24)))
    with pytest.raises(SourceError, match="more than"):
        unpacked(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_says_so():
    held = Spooled("rows")
    with Path("/dev/full").open("wb") as full:
        os.dup2(full.fileno(), held._file.fileno())
    with pytest.raises(SourceError) as caught:
        held.append(b"x" * (1 << 20))
    assert caught.value.slug == "disk-full"
