"""What is said in sound files."""

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.transcript import Transcripts, is_companion


@pytest.fixture
def folder(tmp_path, wav):
    for name in ("a.wav", "b.wav", "sub/c.flac"):
        wav(tmp_path / name)
    return tmp_path


def said(folder):
    return {each.id: each.target for each in open_corpus(folder)}


def test_without_transcripts_there_is_no_target(folder):
    assert said(folder) == {"a.wav": None, "b.wav": None, "sub/c.flac": None}
    assert Transcripts([folder / "a.wav"], folder).stamp() is None


def test_a_text_beside_a_file_is_its_transcript(folder):
    (folder / "a.txt").write_text("hello\n")
    (folder / "sub" / "c.txt").write_text(" ")
    assert said(folder) == {"a.wav": "hello", "b.wav": None, "sub/c.flac": None}
    assert open_corpus(folder / "a.wav").document(0).target == "hello"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("transcripts.tsv", 'file_name\ttranscription\na.wav\thi "you\nsub/c.flac\tho\n'),
        ("metadata.csv", 'text,file_name\n"hi ""you",a.wav\nho,sub/c.flac\n,b.wav\n'),
        ("transcripts.tsv", 'a.wav\thi "you\nsub/c.flac\tho\n'),
        ("metadata.jsonl", '{"file_name": "a.wav", "text": "hi \\"you"}\n'
                           '{"file_name": "sub/c.flac", "text": "ho"}\n'),
        ("x.trans.txt", 'a hi "you\nsub/c ho\nnot here\n'),
    ],
)  # fmt: skip
def test_a_table_has_the_transcripts_of_a_folder(folder, name, text):
    (folder / name).write_text(text)
    assert said(folder) == {"a.wav": 'hi "you', "b.wav": None, "sub/c.flac": "ho"}


def test_a_table_speaks_for_the_folder_it_lies_in(folder):
    (folder / "sub" / "metadata.csv").write_text("file_name,text\nc.flac,ho\n../a.wav,no\n")
    assert said(folder) == {"a.wav": None, "b.wav": None, "sub/c.flac": "ho"}


@pytest.mark.parametrize("text", ["", "file_name,label\na.wav,3\n", "x\n"])
def test_a_table_of_something_else_is_left_alone(folder, text):
    (folder / "metadata.csv").write_text(text)
    (folder / "metadata.jsonl").write_text("nonsense")
    assert set(said(folder).values()) == {None}


def test_links_that_lead_out_are_not_read(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("out") / "secret.txt"
    outside.write_text("secret")
    (folder / "a.txt").symlink_to(outside)
    assert said(folder)["a.wav"] is None


def test_other_words_are_another_fingerprint(folder):
    stamps = {open_corpus(folder).fingerprint}
    (folder / "a.txt").write_text("hello")
    stamps.add(open_corpus(folder).fingerprint)
    (folder / "a.txt").write_text("hallo")
    stamps.add(open_corpus(folder).fingerprint)
    (folder / "metadata.csv").write_text("file_name,text\nb.wav,hi\n")
    stamps.add(open_corpus(folder).fingerprint)
    assert len(stamps) == 4


def test_a_transcript_that_is_no_utf8_is_named(folder):
    (folder / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(SourceError, match=r"a\.txt, line 1") as caught:
        said(folder)
    assert caught.value.slug == "not-utf8"


def test_tables_are_known_by_their_names():
    assert is_companion("metadata.csv") and is_companion("84-121123.trans.txt")
    assert not is_companion("corpus.csv")
