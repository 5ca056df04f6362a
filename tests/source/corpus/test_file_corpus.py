"""Corpora in which every file is a document."""

from pathlib import Path

import pytest

from isoscope.source.corpus.document import Document
from isoscope.source.corpus.files import Files, file_id


class Plain(Files):
    def document(self, ordinal):
        return Document(self.id(ordinal), self.path(ordinal).read_bytes())


@pytest.fixture
def paths(tmp_path):
    (tmp_path / "sub").mkdir()
    found = [tmp_path / "a", tmp_path / "sub" / "a"]
    for i, path in enumerate(found):
        path.write_text(f"content {i}")
    return found


def test_a_document_is_named_as_its_file_below_the_folder(tmp_path, paths):
    corpus = Plain("text", paths, tmp_path)
    assert [each.id for each in corpus] == ["a", "sub/a"]
    assert (corpus.name, corpus.place) == (tmp_path.name, str(tmp_path))
    corpus.keep(paths[1:])
    assert len(corpus) == 1 and corpus.path(0) == paths[1]


def test_a_file_alone_is_named_as_it_is(paths):
    corpus = Plain("text", paths[1:], None)
    assert (corpus.id(0), corpus.name, corpus.place) == ("a", "a", str(paths[1]))


def test_the_fingerprint_has_names_below_the_folder_and_contents(tmp_path, paths):
    before = Plain("text", paths, tmp_path).fingerprint
    alone = Plain("text", paths[:1], None).fingerprint
    paths[0].rename(tmp_path / "b")
    assert Plain("text", [tmp_path / "b", paths[1]], tmp_path).fingerprint != before
    assert Plain("text", [tmp_path / "b"], None).fingerprint == alone
    (tmp_path / "b").write_text("changed")
    assert Plain("text", [tmp_path / "b"], None).fingerprint != alone


def test_names_that_are_no_utf8_are_spelt_out():
    assert file_id(Path("caf\udce9.txt"), None) == r"caf\xe9.txt"
    assert file_id(Path("/x/é/b"), Path("/x")) == "é/b"
