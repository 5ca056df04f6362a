"""Text, a document per file."""

import codecs
import gzip

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus import whole as module
from isoscope.source.corpus.held import OnDisk
from isoscope.source.corpus.whole import content, whole


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b.txt").write_text("second\n\nfile\n")
    (tmp_path / "a.md").write_bytes(codecs.BOM_UTF8 + "ünë".encode())
    (tmp_path / "c.txt").write_text(" \n")
    (tmp_path / "d.txt").touch()
    (tmp_path / "e.txt.gz").write_bytes(gzip.compress(b"packed"))
    return tmp_path


def test_files_are_documents_and_empty_ones_are_counted(folder):
    corpus = open_corpus(folder)
    found = {each.id: each.content for each in corpus}
    assert found == {"a.md": "ünë", "b.txt": "second\n\nfile\n", "e.txt.gz": "packed"}
    assert corpus.document(1).place == str(folder / "b.txt")
    assert corpus.warnings == [f"empty files left out: 2 (first: {folder / 'c.txt'})"]


def test_one_file_can_be_one_document(folder):
    corpus = open_corpus(folder / "b.txt", per="file")
    assert len(corpus) == 1 and corpus.id(0) == "b.txt"
    assert corpus.document(0).content == "second\n\nfile\n"


def test_the_line_that_is_no_utf8_is_named(folder):
    (folder / "x.txt").write_bytes(b"one\ntwo\ncaf\xe9\n")
    with pytest.raises(SourceError, match=r"x\.txt, line 3, got the byte 0xe9") as caught:
        open_corpus(folder)
    assert caught.value.slug == "not-utf8"


def test_bad_files_can_be_left_out(folder):
    (folder / "x.txt").write_bytes(b"caf\xe9")
    (folder / "y.txt").write_bytes(b"\xff\xfea\0")
    corpus = open_corpus(folder, skip_bad=True)
    assert len(corpus) == 3
    assert f"cannot be read left out: 2 (first: {folder / 'x.txt'})" in corpus.warnings[1]


def test_a_file_that_would_fill_the_memory_is_refused(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_DOCUMENT", 8)
    with pytest.raises(SourceError, match=r"b\.txt") as caught:
        open_corpus(folder)
    assert caught.value.slug == "document-too-large" and "--per line" in caught.value.hint


def test_content_is_read_as_it_is(folder):
    assert content(folder / "e.txt.gz") == "packed"
    assert whole(OnDisk(folder / "a.md")) == "ünë"
