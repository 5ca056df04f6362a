"""One file as a corpus, read as its name, its content or the caller says."""

import gzip

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.file_format import FORMATS, KIND_OF, format_of, is_labels, open_file
from isoscope.source.request import CorpusRequest


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


def test_only_empty_documents_are_said_to_be_so(tmp_path):
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


def test_labels_are_told_from_images():
    assert is_labels("t10k-labels-idx1-ubyte.gz") and not is_labels("t10k-images-idx3-ubyte")
