"""Text, a document per line."""

import codecs
import json
import re
import subprocess
import sys

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import lines as module
from isoscope.source.corpus import open_corpus


def written(tmp_path, raw):
    (tmp_path / "notes.txt").write_bytes(raw)
    return tmp_path / "notes.txt"


def test_lines_are_documents_and_empty_ones_are_counted(tmp_path):
    path = written(tmp_path, b"first\n\n  \t\r\nsecond  \r\n  third")
    corpus = open_corpus(path)
    assert [each.content for each in corpus] == ["first", "second  ", "  third"]
    assert [each.id for each in corpus] == ["notes.txt:0", "notes.txt:1", "notes.txt:2"]
    assert corpus.document(2).place == f"{path}, line 5"
    assert corpus.warnings == [f"empty lines left out: 2 (first: {path}, line 2)"]
    assert (corpus.kind, corpus.name, corpus.place) == ("text", "notes.txt", str(path))


def test_a_byte_order_mark_is_no_text(tmp_path):
    corpus = open_corpus(written(tmp_path, codecs.BOM_UTF8 + b"first\nsecond"))
    assert [each.content for each in corpus] == ["first", "second"]


def test_only_line_feeds_end_lines(tmp_path):
    text = "a\u2028b\x0cc\x85d"
    assert open_corpus(written(tmp_path, text.encode())).document(0).content == text


def test_bytes_that_are_no_utf8_are_named_or_left_out(tmp_path):
    path = written(tmp_path, b"first\ncaf\xe9\nthird\n")
    with pytest.raises(SourceError, match=r"notes\.txt, line 2, got the byte 0xe9") as caught:
        open_corpus(path)
    assert caught.value.slug == "not-utf8" and "iconv" in caught.value.hint
    corpus = open_corpus(path, skip_bad=True)
    assert [each.id for each in corpus] == ["notes.txt:0", "notes.txt:2"]
    assert "documents that are not UTF-8 left out: 1" in corpus.warnings[0]


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
    monkeypatch.setattr(module, "MAX_DOCUMENT", 100)
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
