"""Texts that are in memory already."""

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import open_corpus


def test_entries_are_documents_and_empty_ones_are_left_out(texts):
    corpus = open_corpus([*texts, " ", "last"])
    assert [each.content for each in corpus] == [*texts, "last"]
    assert corpus.id(0) == "memory:0" and corpus.id(len(texts)) == f"memory:{len(texts) + 1}"
    assert corpus.warnings == [
        "empty documents left out: 1 (first: the list of texts, entry 5)"
    ]
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
