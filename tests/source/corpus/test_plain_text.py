"""Text, a document per line."""

import codecs
import gzip
import json
import re
import subprocess
import sys
from importlib.resources import files

import pytest

from isoscope.errors import SourceError
from isoscope.source import lines
from isoscope.source.bytes import FileBytes
from isoscope.source.corpus import open_corpus, texts
from isoscope.source.corpus.texts import read_text, read_whole


def written(tmp_path, raw):
    (tmp_path / "notes.txt").write_bytes(raw)
    return tmp_path / "notes.txt"


def test_lines_are_documents_and_empty_ones_are_counted(tmp_path):
    path = written(tmp_path, b"first\n\n  \t\r\nsecond  \r\n  third")
    corpus = open_corpus(path)
    assert [each.content for each in corpus] == ["first", "second  ", "  third"]
    assert [each.id for each in corpus] == ["notes.txt:0", "notes.txt:1", "notes.txt:2"]
    assert corpus.document(2).place == f"{path}, line 5"
    assert corpus.warnings == [f"empty lines skipped: 2 (first: {path}, line 2)"]
    assert (corpus.kind, corpus.name, corpus.place) == ("text", "notes.txt", str(path))


def test_a_byte_order_mark_is_no_text(tmp_path):
    corpus = open_corpus(written(tmp_path, codecs.BOM_UTF8 + b"first\nsecond"))
    assert [each.content for each in corpus] == ["first", "second"]


def test_only_line_feeds_end_lines(tmp_path):
    text = "a\u2028b\x0cc\x85d"
    assert open_corpus(written(tmp_path, text.encode())).document(0).content == text


def test_bytes_that_are_no_utf8_are_named_or_skipped(tmp_path):
    path = written(tmp_path, b"first\ncaf\xe9\nthird\n")
    with pytest.raises(SourceError, match=r"notes\.txt, line 2, got the byte 0xe9") as caught:
        open_corpus(path)
    assert caught.value.slug == "not-utf8" and "iconv" in caught.value.hint
    corpus = open_corpus(path, skip_bad=True)
    assert [each.id for each in corpus] == ["notes.txt:0", "notes.txt:2"]
    assert "documents that are not UTF-8 skipped: 1" in corpus.warnings[0]


@pytest.mark.parametrize("raw", ["a\nb".encode("utf-16"), b"\x89PNG\r\n\x1a\n\0\0", b"a\0b"])
def test_what_is_no_text_is_not_blamed_on_line_one(tmp_path, raw):
    with pytest.raises(SourceError, match="expected text in") as caught:
        open_corpus(written(tmp_path, raw))
    assert caught.value.slug == "corpus-kind"


def test_a_column_of_plain_text_is_refused(tmp_path):
    with pytest.raises(SourceError, match="cannot take a column") as caught:
        open_corpus(written(tmp_path, b"a"), column="text")
    assert caught.value.slug == "no-columns"


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    assert len(open_corpus(written(tmp_path, b"x" * 99 + b"\n" + b"y"))) == 2
    with pytest.raises(SourceError, match=r"line 2\n") as caught:
        open_corpus(written(tmp_path, b"y\n" + b"x" * 101))
    assert caught.value.slug == "document-too-large"


def test_the_fingerprint_sees_every_byte(tmp_path):
    raw = bytearray(b"some text here\n" * 100_000)
    before = open_corpus(written(tmp_path, bytes(raw))).fingerprint
    raw[777_777] ^= 1
    assert open_corpus(written(tmp_path, bytes(raw))).fingerprint != before


READER = """
import json, re, sys
from pathlib import Path
from isoscope.source.corpus import open_corpus

corpus = open_corpus(sys.argv[1])
order = corpus.order(1)
total = sum(len(corpus.document(int(i)).content) for i in order[:1000])
status = Path("/proc/self/status").read_text()
anonymous = int(re.search(r"RssAnon:\\s+(\\d+)", status)[1]) / 1024
print(json.dumps({"documents": len(corpus), "total": total, "anonymous": anonymous}))
"""
WATCHED = """
import re, threading, time
from pathlib import Path

peak = 0
def watch():
    global peak
    while True:
        found = re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())
        peak = max(peak, int(found[1]) / 1024)
        time.sleep(0.005)

threading.Thread(target=watch, daemon=True).start()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    line = " ".join(f"word{i}" for i in range(30)).encode() + b"\n"
    count = (200 << 20) // len(line)
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        for _ in range(count // 1000):
            file.write(line * 1000)
    code = WATCHED + READER + "print(peak)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    found, peak = done.stdout.splitlines()
    assert json.loads(found)["documents"] == count // 1000 * 1000
    assert json.loads(found)["total"] == 1000 * (len(line) - 1)
    assert re.fullmatch(r"[\d.]+", peak) and float(peak) < 150


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
    assert corpus.warnings == [f"empty files skipped: 2 (first: {folder / 'c.txt'})"]


def test_one_file_can_be_one_document(folder):
    corpus = open_corpus(folder / "b.txt", per="file")
    assert len(corpus) == 1 and corpus.id(0) == "b.txt"
    assert corpus.document(0).content == "second\n\nfile\n"


def test_the_line_that_is_no_utf8_is_named(folder):
    (folder / "x.txt").write_bytes(b"one\ntwo\ncaf\xe9\n")
    with pytest.raises(SourceError, match=r"x\.txt, line 3, got the byte 0xe9") as caught:
        open_corpus(folder)
    assert caught.value.slug == "not-utf8"


def test_bad_files_can_be_skipped(folder):
    (folder / "x.txt").write_bytes(b"caf\xe9")
    (folder / "y.txt").write_bytes(b"\xff\xfea\0")
    corpus = open_corpus(folder, skip_bad=True)
    assert len(corpus) == 3
    assert f"cannot be read skipped: 2 (first: {folder / 'x.txt'})" in corpus.warnings[1]


def test_a_file_that_would_fill_the_memory_is_refused(folder, monkeypatch):
    monkeypatch.setattr(texts, "MAX_DOCUMENT", 8)
    with pytest.raises(SourceError, match=r"b\.txt") as caught:
        open_corpus(folder)
    assert caught.value.slug == "document-too-large" and "--per=line" in caught.value.hint


def test_content_is_read_as_it_is(folder):
    assert read_text(folder / "e.txt.gz") == "packed"
    assert read_whole(FileBytes(folder / "a.md")) == "ünë"


def test_it_is_found_as_a_resource_of_the_package_with_its_origin():
    folder = files("isoscope.source.corpus") / "bundled"
    assert (folder / "text.txt").is_file()
    assert "Public domain" in (folder / "README.md").read_text()


def test_documents_are_paragraphs_of_prose():
    corpus = open_corpus(None)
    assert (corpus.kind, corpus.name, corpus.warnings) == ("text", "bundled", [])
    assert 1000 <= len(corpus) <= 2000
    assert [corpus.id(0), corpus.id(1500)] == ["bundled:0", "bundled:1500"]
    words = [len(each.content.split()) for each in corpus]
    assert min(words) >= 40 and max(words) <= 250
    assert len({each.content for each in corpus}) == len(corpus)
    assert sum(len(each.content.encode()) for each in corpus) < 1_000_000


def test_messages_do_not_show_where_the_package_lies():
    assert open_corpus(None).document(3).place == "the bundled text, line 4"


def test_every_part_is_in_it():
    whole = " ".join(each.content for each in open_corpus(None))
    for word in ("fellow citizens", "Soviet", "ROMEO:", "Medicare"):
        assert word in whole
    assert "(Applause" not in whole and "  " not in whole


def test_entries_are_documents_and_empty_ones_are_skipped(texts):
    corpus = open_corpus([*texts, " ", "last"])
    assert [each.content for each in corpus] == [*texts, "last"]
    assert corpus.id(0) == "memory:0" and corpus.id(len(texts)) == f"memory:{len(texts) + 1}"
    assert corpus.warnings == ["empty documents skipped: 1 (first: the list of texts, entry 5)"]
    assert open_corpus(tuple(texts)).document(1).place == "the list of texts, entry 1"


def test_the_fingerprint_follows_the_texts(texts):
    before = open_corpus(texts).fingerprint
    assert open_corpus([*texts, ""]).fingerprint == before
    assert open_corpus(texts[1:]).fingerprint != before
    assert open_corpus(["ab", "c"]).fingerprint != open_corpus(["a", "bc"]).fingerprint


def test_half_characters_are_bad(texts):
    with pytest.raises(SourceError, match="entry 1") as caught:
        open_corpus(["a", "\ud800"])
    assert caught.value.slug == "not-utf8"
    assert len(open_corpus(["a", "\ud800"], skip_bad=True)) == 1


def test_what_is_no_text_is_refused():
    with pytest.raises(SourceError, match=r"entry 1 of the list, got int") as caught:
        open_corpus(["a", 3], skip_bad=True)
    assert caught.value.slug == "corpus-kind"
    with pytest.raises(SourceError, match="cannot take a column"):
        open_corpus(["a"], column="text")
