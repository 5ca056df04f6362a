"""A folder as a corpus."""

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import open_corpus
from isoscope.source.paths import list_files


def test_text_is_a_document_per_file_or_per_line(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "b.txt").write_text("one\ntwo")
    (tmp_path / "s" / "a.txt").write_text("three\n\nfour")
    assert [each.id for each in open_corpus(tmp_path)] == ["b.txt", "s/a.txt"]
    lines = open_corpus(tmp_path, per="line")
    assert [each.id for each in lines] == ["b.txt:0", "b.txt:1", "s/a.txt:0", "s/a.txt:1"]
    assert lines.fingerprint != open_corpus(tmp_path).fingerprint
    assert len(lines.warnings) == 1 and lines.name == tmp_path.name


def test_tables_are_read_one_after_another(tmp_path, jsonl):
    jsonl(tmp_path / "b.jsonl", [{"text": "one"}])
    jsonl(tmp_path / "a.ndjson", [{"text": "two"}, {"text": ""}])
    (tmp_path / "c.jsonl").touch()
    corpus = open_corpus(tmp_path)
    assert [each.id for each in corpus] == ["a.ndjson:0", "b.jsonl:0"]
    assert [each.split(" skipped")[0] for each in corpus.warnings] == [
        "empty documents", "empty files",
    ]  # fmt: skip


def test_tables_can_be_read_as_whole_files(tmp_path, jsonl):
    for name in ("a/x.jsonl", "b/x.jsonl"):
        (tmp_path / name).parent.mkdir()
        jsonl(tmp_path / name, [{"text": "one"}])
    corpus = open_corpus(tmp_path, per="file")
    assert [each.id for each in corpus] == ["a/x.jsonl", "b/x.jsonl"]
    assert corpus.document(0).content == '{"text": "one"}\n'


def test_hidden_files_runs_licences_and_links_out_are_excluded(tmp_path):
    folder = tmp_path / "in"
    (folder / "run").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name in ("a.txt", ".b.txt", ".git/c.txt", "run/d.txt", "run/run.json", "LICENSE.txt"):
        (folder / name).write_text("text")
    (tmp_path / "out.txt").write_text("text")
    (folder / "e.txt").symlink_to(tmp_path / "out.txt")
    (folder / "loop").symlink_to(folder)
    assert [each.id for each in open_corpus(folder)] == ["a.txt"]
    assert list_files(folder, "a corpus") == [folder / "LICENSE.txt", folder / "a.txt"]


def test_a_licence_alone_is_a_text_like_any(tmp_path):
    (tmp_path / "LICENSE.txt").write_text("text")
    assert len(open_corpus(tmp_path)) == 1


def test_mixed_kinds_are_counted_and_a_kind_decides(tmp_path, wav, picture):
    for i in range(3):
        wav(tmp_path / f"{i}.wav")
    picture(tmp_path / "a.png")
    (tmp_path / "notes.txt").write_text("text")
    with pytest.raises(SourceError, match=r"got 3 \.wav, 1 \.png, 1 \.txt") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug == "corpus-mixed"
    assert caught.value.hint == "choose with --kind: audio or image or text"
    found = {kind: len(open_corpus(tmp_path, kind=kind)) for kind in ("audio", "image", "text")}
    assert found == {"audio": 3, "image": 1, "text": 1}


def test_formats_of_one_kind_do_not_mix_either(tmp_path, jsonl):
    (tmp_path / "a.txt").write_text("text")
    jsonl(tmp_path / "b.jsonl", [{"text": "one"}])
    with pytest.raises(SourceError, match="files of one format") as caught:
        open_corpus(tmp_path)
    assert "name one of the files" in caught.value.hint


def test_images_and_idx_files_go_together(tmp_path, picture, idx, images):
    picture(tmp_path / "a.png")
    (tmp_path / "b-idx3-ubyte").write_bytes(idx(images(n=2)))
    assert [each.id for each in open_corpus(tmp_path)] == [
        "a.png", "b-idx3-ubyte:0", "b-idx3-ubyte:1",
    ]  # fmt: skip


def test_folders_without_a_corpus_say_what_they_have(tmp_path):
    with pytest.raises(SourceError, match="got an empty folder") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug == "corpus-empty"
    (tmp_path / "a.bin").touch()
    (tmp_path / "Makefile").touch()
    with pytest.raises(SourceError, match=r"got 1 without suffix, 1 \.bin") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug == "corpus-kind" and ".wav" in caught.value.hint
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(SourceError, match="corpus of kind 'audio'"):
        open_corpus(tmp_path, kind="audio")


def test_only_empty_files_are_no_corpus(tmp_path):
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(SourceError, match="only empty files") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug == "corpus-empty"


def test_a_run_is_no_corpus(tmp_path):
    (tmp_path / "run.json").touch()
    with pytest.raises(SourceError, match="got the run") as caught:
        open_corpus(tmp_path)
    assert caught.value.slug == "run-folder"


def test_a_bad_file_among_them_is_named(tmp_path, jsonl):
    jsonl(tmp_path / "a.jsonl", [{"text": "one"}])
    (tmp_path / "b.jsonl").write_text("nonsense\n")
    with pytest.raises(SourceError, match=r"b\.jsonl, line 1"):
        open_corpus(tmp_path)


def test_an_id_that_two_files_have_is_refused(tmp_path, jsonl):
    jsonl(tmp_path / "a.jsonl", [{"text": "one", "id": 1}])
    jsonl(tmp_path / "b.jsonl", [{"text": "two", "id": "1"}])
    with pytest.raises(SourceError, match=r"'1' in .*a\.jsonl, line 1 and again in .*b\.jsonl"):
        open_corpus(tmp_path, id="id")
