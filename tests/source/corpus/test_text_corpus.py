"""Texts that are pieces of a file: what is indexed, what is left out, how they are named."""

import os

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus.fault import BadDocumentError, BadEncodingError
from isoscope.source.corpus.held import OnDisk
from isoscope.source.corpus.pieces import Fields, Layout, Piece, Pieces
from isoscope.source.corpus.wanted import Wanted

RAW = b"one|!bad||two|?coded|three"


def parse(raw):
    if raw.startswith(b"!"):
        raise BadDocumentError("something bad")
    if raw.startswith(b"?"):
        raise BadEncodingError("something coded")
    return Fields(raw.decode(), "target", None)


def pieces():
    start = 0
    for number, raw in enumerate(RAW.split(b"|")):
        yield Piece(number + 10, start, raw)
        start += len(raw) + 1


@pytest.fixture
def held(tmp_path):
    (tmp_path / "a").write_bytes(RAW)
    return OnDisk(tmp_path / "a", "place")


def test_bad_pieces_keep_their_ordinal_and_empty_ones_have_none(held):
    corpus = Pieces(held, pieces(), Layout("name", parse, ""), Wanted(skip_bad=True))
    found = [(each.id, each.content, each.place) for each in corpus]
    assert found == [
        ("name:0", "one", "place, line 10"),
        ("name:2", "two", "place, line 13"),
        ("name:4", "three", "place, line 15"),
    ]
    assert corpus.warnings == [
        "documents that cannot be read left out: 1 (first: place, line 11)",
        "empty documents left out: 1 (first: place, line 12)",
        "documents that are not UTF-8 left out: 1 (first: place, line 14)",
    ]


def test_without_leave_the_first_bad_piece_is_an_error(held):
    with pytest.raises(SourceError, match="in place, row 11, got something bad"):
        Pieces(held, pieces(), Layout("name", parse, "", unit="row"), Wanted())


def test_ids_that_are_given_go_before_ordinals(held):
    def named(raw):
        return Fields(raw.decode(), id=f"<{raw.decode()}>")

    corpus = Pieces(held, pieces(), Layout("name", named, ""), Wanted())
    assert [corpus.id(i) for i in range(2)] == ["<one>", "<!bad>"]
    assert corpus.document(4).id == "<three>" and len(corpus.keys()) == 5


def test_what_could_be_read_and_now_cannot_has_changed(held, tmp_path):
    corpus = Pieces(held, pieces(), Layout("name", parse, ""), Wanted(skip_bad=True))
    before = (tmp_path / "a").stat()
    (tmp_path / "a").write_bytes(b"!" + RAW[1:])  # within one tick of the clock
    os.utime(tmp_path / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SourceError, match="changed"):
        corpus.document(0)
