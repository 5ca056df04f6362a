"""Corpora in which every file is a document."""

import sys
from pathlib import Path

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.corpus import Document
from isoscope.source.corpus.file_corpus import FileCorpus, file_id, import_extra
from isoscope.source.request import CorpusRequest


class Plain(FileCorpus):
    def check(self, path):
        return "dropped" if path.name == "dropped" else None

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
    corpus = Plain("text", paths, tmp_path, CorpusRequest())
    assert [each.id for each in corpus] == ["a", "sub/a"]
    assert (corpus.name, corpus.place) == (tmp_path.name, str(tmp_path))
    assert len(corpus) == 2 and corpus.path(1) == paths[1]


def test_files_that_a_check_rejects_are_dropped_and_counted(tmp_path, paths):
    corpus = Plain("text", [tmp_path / "dropped", *paths], tmp_path, CorpusRequest())
    assert len(corpus) == 2 and "dropped" in corpus.warnings[0]


def test_a_file_alone_is_named_as_it_is(paths):
    corpus = Plain("text", paths[1:], None, CorpusRequest())
    assert (corpus.id(0), corpus.name, corpus.place) == ("a", "a", str(paths[1]))


def test_the_fingerprint_has_names_below_the_folder_and_contents(tmp_path, paths):
    before = Plain("text", paths, tmp_path, CorpusRequest()).fingerprint
    alone = Plain("text", paths[:1], None, CorpusRequest()).fingerprint
    paths[0].rename(tmp_path / "b")
    assert (
        Plain("text", [tmp_path / "b", paths[1]], tmp_path, CorpusRequest()).fingerprint
        != before
    )
    assert Plain("text", [tmp_path / "b"], None, CorpusRequest()).fingerprint == alone
    (tmp_path / "b").write_text("changed")
    assert Plain("text", [tmp_path / "b"], None, CorpusRequest()).fingerprint != alone


def test_names_that_are_no_utf8_are_spelt_out():
    assert file_id(Path("caf\udce9.txt"), None) == r"caf\xe9.txt"
    assert file_id(Path("/x/é/b"), Path("/x")) == "é/b"


def test_what_is_there_is_imported():
    assert import_extra("json", "audio", "audio").loads("3") == 3


@pytest.mark.parametrize(
    ("package", "extra", "name"),
    [("soundfile", "audio", "a.wav"), ("PIL.Image", "image", "a.png")],
)
def test_what_is_missing_says_how_to_get_it(tmp_path, monkeypatch, package, extra, name):
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for a failed import
    with pytest.raises(SourceError, match="without") as caught:
        open_corpus(tmp_path / name, skip_bad=True)
    assert caught.value.hint == f"pip install 'isoscope[{extra}]'"
    assert caught.value.slug == "package-missing"


def test_opening_text_loads_none_of_them(tmp_path):
    import subprocess

    code = (
        "import sys; from isoscope.source.corpus import open_corpus; open_corpus(None)\n"
        "print({'soundfile', 'soxr', 'PIL', 'pyarrow', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
