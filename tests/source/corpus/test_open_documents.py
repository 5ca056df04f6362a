"""What a path, a dash, a list or nothing becomes."""

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from isoscope.errors import SourceError, UnknownNameError
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.corpus import CorpusRequest
from isoscope.source.corpus.open_documents import (
    FORMATS,
    KIND_OF,
    format_of,
    open_file,
)

PIPED = """
import json, sys
from isoscope.errors import IsoscopeError
from isoscope.source.corpus import open_corpus
try:
    corpus = open_corpus("-", **json.loads(sys.argv[1]))
    print(json.dumps([[each.id, each.content] for each in corpus] + [corpus.fingerprint]))
except IsoscopeError as error:
    print(json.dumps([error.slug, error.problem]))
"""


def piped(raw, how="{}"):
    import json

    done = subprocess.run(
        [sys.executable, "-c", PIPED, how], input=raw, capture_output=True, check=True
    )
    return json.loads(done.stdout)


def test_standard_input_is_a_document_per_line(tmp_path):
    raw = "eins\n\nzwëi\n".encode()
    *documents, stamp = piped(raw)
    assert documents == [["stdin:0", "eins"], ["stdin:1", "zwëi"]]
    (tmp_path / "a.txt").write_bytes(raw)
    assert open_corpus(tmp_path / "a.txt").fingerprint == stamp


def test_standard_input_may_be_one_document_or_jsonl():
    assert piped(b"one\ntwo\n", '{"per": "file"}')[0] == ["stdin:0", "one\ntwo\n"]
    assert piped(b'{"body": "one"}\n', '{"column": "body"}')[0] == ["stdin:0", "one"]


def test_standard_input_that_is_no_text_is_refused():
    assert piped(b"")[0] == "corpus-empty"
    assert piped(b"\x93NUMPY\0")[0] == "corpus-kind"
    assert piped(b"a\ncaf\xe9")[0] == "not-utf8"
    assert piped(b"a", '{"kind": "audio"}')[0] == "corpus-kind"


def test_a_terminal_is_not_waited_for(monkeypatch):
    _, terminal = os.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(SourceError, match="got a terminal") as caught:
            open_corpus("-")
    assert caught.value.slug == "stdin-terminal"


def test_a_named_pipe_is_read_like_standard_input(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("one\ntwo\n"))
    writer.start()
    corpus = open_corpus(tmp_path / "pipe")
    writer.join()
    assert [each.id for each in corpus] == ["pipe:0", "pipe:1"]
    assert corpus.document(1).content == "two"


@pytest.mark.parametrize("where", ["nowhere.txt", "a\0b", Path("no/where")])
def test_what_is_not_there_is_reported(where):
    with pytest.raises(SourceError, match="got nothing of that name") as caught:
        open_corpus(where)
    assert caught.value.slug == "file-missing"


def test_a_path_may_be_text_or_object_and_begin_at_home(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("text")
    monkeypatch.setenv("HOME", str(tmp_path))
    for where in (str(tmp_path / "a.txt"), tmp_path / "a.txt", "~/a.txt"):
        assert open_corpus(where).document(0).content == "text"


@pytest.mark.parametrize("where", [[], ["", " "]])
def test_an_empty_list_is_no_corpus(where):
    with pytest.raises(SourceError) as caught:
        open_corpus(where)
    assert caught.value.slug == "corpus-empty"


@pytest.mark.parametrize("where", [3, {"text": "a"}, object()])
def test_other_things_are_refused(where):
    with pytest.raises(SourceError, match="path or a list") as caught:
        open_corpus(where)
    assert caught.value.slug == "corpus-kind"


def test_settings_that_make_no_sense_are_refused(tmp_path, jsonl):
    path = jsonl(tmp_path / "a.jsonl", [{"text": "one"}])
    with pytest.raises(UnknownNameError, match="no corpus kind is called 'sound'") as caught:
        open_corpus(path, kind="sound")
    assert caught.value.slug == "unknown-corpus-kind"
    for how in ({"per": "page"}, {"per": "line", "column": "text"}):
        with pytest.raises(SourceError) as caught:
            open_corpus(path, **how)
        assert caught.value.slug == "corpus-per"


def test_only_text_is_cut_into_lines(tmp_path, wav):
    wav(tmp_path / "a.wav")
    with pytest.raises(SourceError, match="with audio") as caught:
        open_corpus(tmp_path / "a.wav", per="line")
    assert caught.value.slug == "corpus-per"


def test_an_id_that_comes_twice_is_refused(tmp_path, jsonl):
    rows = [{"text": "one", "id": each} for each in ("a", "b", "c", "b")]
    path = jsonl(tmp_path / "a.jsonl", rows)
    with pytest.raises(SourceError, match=r"'b' in .*line 2 and again in .*line 4") as caught:
        open_corpus(path, id="id")
    assert caught.value.slug == "id-twice"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_reported(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "a.txt").chmod(0)
    with pytest.raises(SourceError) as caught:
        open_corpus(tmp_path / "a.txt")
    assert caught.value.slug == "file-unreadable"


def test_text_needs_no_suffix(tmp_path):
    for name in ("notes", "a.tex", "a.py"):
        (tmp_path / name).write_text("ü" * 5000 + "\nsecond")  # a character across the sample
        assert len(open_corpus(tmp_path / name)) == 2


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.tsv.gz", "a.txt.gz"])
def test_packed_tables_and_texts_are_unpacked(tmp_path, name):
    text = '{"text": "one"}' if "json" in name else "text\none"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    corpus = open_corpus(tmp_path / name)
    assert corpus.document(len(corpus) - 1).content == "one"
    assert corpus.id(0) == f"{name}:0"


def test_a_name_may_be_given(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    assert open_file(tmp_path / "a.txt", CorpusRequest(), "sub/a.txt").id(0) == "sub/a.txt:0"


def test_a_kind_says_what_the_name_does_not(tmp_path, picture, wav):
    np.save(tmp_path / "t.npy", np.arange(9))
    (tmp_path / "t.npy").rename(tmp_path / "tokens.dat")
    assert open_corpus(tmp_path / "tokens.dat", kind="tokens").kind == "tokens"
    picture(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / "picture")
    assert open_corpus(tmp_path / "picture", kind="image").kind == "image"
    wav(tmp_path / "a.wav")
    (tmp_path / "a.wav").rename(tmp_path / "sound")
    assert open_corpus(tmp_path / "sound", kind="audio").kind == "audio"
    (tmp_path / "a.npy").write_text("text after all")
    assert open_corpus(tmp_path / "a.npy", kind="text").kind == "text"


@pytest.mark.parametrize(
    ("name", "raw", "slug"),
    [
        ("a.txt", b"", "corpus-empty"),
        ("a.txt", b"\n \n", "corpus-empty"),
        ("a.jsonl", b'{"text": ""}', "corpus-empty"),
        ("a.bin", b"\0\1\2", "corpus-kind"),
        ("a.bin", b"caf\xe9", "corpus-kind"),
        ("a.json", b"{}", "corpus-kind"),
        ("a.zip", b"PK\3\4", "corpus-kind"),
        ("a.npy.gz", b"text", "corpus-kind"),
        ("a.pkl", b"\x80\4", "corpus-kind"),
        ("a.npy", b"text", "file-kind"),
        ("a.npy", b"\x80\4", "pickle"),
    ],
)
def test_what_is_no_corpus_is_refused(tmp_path, name, raw, slug):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(SourceError, match=name) as caught:
        open_corpus(tmp_path / name)
    assert caught.value.slug == slug and caught.value.hint


def test_only_empty_documents_are_reported_as_so(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n")
    with pytest.raises(SourceError, match="got only empty or unreadable ones"):
        open_corpus(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.txt", "text"),
        ("A.TXT", "text"),
        ("a.b.md", "text"),
        ("a.txt.gz", "text"),
        ("a.jsonl.gz", "jsonl"),
        ("a.pq", "parquet"),
        ("a.parquet.gz", None),
        ("a.wav.gz", None),
        ("a.FLAC", "audio"),
        ("a.jpeg", "image"),
        ("t-images-idx3-ubyte", "idx"),
        ("t-images.idx3-ubyte.gz", "idx"),
        ("t-labels-idx1-ubyte", "idx"),
        ("a.json", None),
        ("txt", None),
        ("", None),
    ],
)
def test_names_stand_for_formats(name, found):
    assert format_of(name) == found


def test_every_format_has_its_kind():
    assert set(FORMATS.values()) | {"idx"} == set(KIND_OF)
