"""Labels: from a column, a file, a list or by id, and refused where they do not match."""

import json

import pytest

from isoscope.errors import ConfigError, SourceError, UnknownNameError
from isoscope.lab.probe.labels import against_rest, labels_for, open_labelled
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.texts import MAX_DOCUMENT


@pytest.fixture
def reviews(tmp_path, texts):
    rows = [{"text": text, "long": len(text) > 80, "n": i} for i, text in enumerate(texts)]
    path = tmp_path / "reviews.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_column_gives_words_and_feeds_them_to_no_model(reviews, texts):
    corpus, labels = open_labelled(reviews, "long")
    assert labels == ["true" if len(text) > 80 else "false" for text in texts]
    assert {document.target for document in corpus} == {None}


def test_empty_documents_take_their_labels_with_them(reviews):
    lines = reviews.read_text().splitlines()
    lines[3] = json.dumps({"text": " ", "n": 3})
    reviews.write_text("\n".join(lines))
    corpus, labels = open_labelled(reviews, "n")
    assert len(corpus) == len(labels) == 39
    assert labels[2:4] == ["2", "4"]


def test_a_document_without_its_label_is_named(reviews):
    lines = reviews.read_text().splitlines()
    lines[7] = json.dumps({"text": "a text without"})
    reviews.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match=r"of 40 documents, got none for '.*:7'") as raised:
        open_labelled(reviews, "n")
    assert raised.value.slug == "labels-mismatch"


def test_a_file_has_a_label_a_line(tmp_path, texts):
    path = tmp_path / "labels.txt"
    path.write_text("\ufeff" + "\r\n".join(f" {n % 2} " for n in range(40)) + "\r\n")
    for given in (path, str(path)):
        corpus, labels = open_labelled(texts, given)
        assert labels == [str(n % 2) for n in range(40)]
        assert len(corpus) == 40


@pytest.mark.parametrize(
    ("content", "problem", "slug"),
    [
        (b"a\nb\n", "each of 40 documents, got 2", "labels-mismatch"),
        (b"a\n\nb\n", "got an empty line 2 in", "labels-mismatch"),
        (b"a\n\xff\n", "expected UTF-8 text in .*, line 2, got", "not-utf8"),
        (None, "got nothing of that name", "file-missing"),
    ],
)
def test_files_that_do_not_match_are_refused(tmp_path, texts, content, problem, slug):
    path = tmp_path / "labels.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((ConfigError, SourceError), match=problem) as raised:
        open_labelled(texts, path)
    assert raised.value.slug == slug


def test_a_huge_file_is_not_read(tmp_path, texts):
    path = tmp_path / "labels.txt"
    path.write_bytes(b"yes\n" * (MAX_DOCUMENT // 4 + 1))
    with pytest.raises(SourceError, match="64 MiB at most") as raised:
        open_labelled(texts, path)
    assert raised.value.slug == "document-too-large"


def test_a_corpus_without_columns_says_where_labels_may_come_from(tmp_path, texts):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(texts))
    with pytest.raises(SourceError, match="cannot take a column") as raised:
        open_labelled(path, "stars")
    assert raised.value.slug == "no-columns"
    assert "ending in .txt" in raised.value.hint
    with pytest.raises(SourceError) as raised:
        open_labelled(path, "stars", column="text")
    assert "ending in .txt" not in raised.value.hint


def test_a_column_that_is_not_there_gets_the_nearest(reviews):
    with pytest.raises(UnknownNameError, match="no column is called 'lon'") as raised:
        open_labelled(reviews, "lon")
    assert "did you mean 'long'?" in raised.value.hint


def test_labels_may_be_given_as_they_are_or_by_id(texts):
    corpus = open_corpus(texts)
    ids = [corpus.id(n) for n in range(40)]
    assert open_labelled(corpus, list(range(40)))[1] == list(range(40))
    assert labels_for(corpus, {each: n for n, each in enumerate(ids)}) == list(range(40))
    with pytest.raises(ConfigError, match="got none for"):
        labels_for(corpus, dict.fromkeys(ids[1:], 0))


def test_one_label_is_set_against_the_rest():
    assert against_rest([1, 2, 3, 1], "1") == ["1", "not 1", "not 1", "1"]
    with pytest.raises(UnknownNameError, match="no label is called 'goot'") as raised:
        against_rest(["good", "bad"], "goot")
    assert raised.value.hint == "did you mean 'good'?"
