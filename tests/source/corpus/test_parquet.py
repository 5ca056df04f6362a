"""parquet: a row a document."""

import pyarrow as pa
import pytest

from isoscope.errors import IsoscopeError, SourceError, UnknownNameError
from isoscope.source.corpus import open_corpus


def test_columns_become_text_target_and_id(tmp_path, parquet, texts):
    n = len(texts)
    path = parquet(tmp_path / "a.parquet", body=texts, n=list(range(n)), said=["x"] * n)
    corpus = open_corpus(path, column="body", target="said", id="n")
    assert [each.content for each in corpus] == texts
    assert corpus.document(4).id == "4" and corpus.document(4).target == "x"
    assert corpus.document(4).place == f"{path}, row 4"
    assert open_corpus(path, column="body").document(4).id == "a.parquet:4"


@pytest.mark.parametrize("labels", [[True, False], [1, 0], ["x", "y"], [0.5, None]])
def test_labels_come_along(tmp_path, parquet, labels):
    path = parquet(tmp_path / "a.parquet", text=["a", "b"], y=labels)
    said = {True: "true", False: "false", None: None}
    expected = [said[y] if y is None or isinstance(y, bool) else str(y) for y in labels]
    assert [each.label for each in open_corpus(path, label="y")] == expected
    if isinstance(labels[0], bool):
        with pytest.raises(SourceError, match="expected text in column 'y'"):
            open_corpus(path, target="y")


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_all_kinds_of_text_are_text(tmp_path, parquet, texts, kind):
    path = parquet(tmp_path / "a.pq", text=pa.array(texts).cast(kind))
    assert [each.content for each in open_corpus(path)] == texts


def test_nulls_are_bad_and_empty_texts_are_left_out(tmp_path, parquet):
    path = parquet(tmp_path / "a.parquet", text=["a", "", None, "d"])
    with pytest.raises(SourceError, match=r"row 2, got nothing \(null\)"):
        open_corpus(path)
    corpus = open_corpus(path, skip_bad=True)
    assert [each.id for each in corpus] == ["a.parquet:0", "a.parquet:2"]
    assert [each.place[-5:] for each in corpus] == ["row 0", "row 3"]
    assert len(corpus.warnings) == 2


def test_text_that_is_no_utf8_is_a_fault_of_its_row(tmp_path, parquet):
    raw = pa.array([b"a", b"caf\xe9", b"c"])
    text = pa.StringArray.from_buffers(3, *raw.buffers()[1:], raw.buffers()[0])
    path = parquet(tmp_path / "a.parquet", text=text)
    with pytest.raises(SourceError, match="row 1") as caught:
        open_corpus(path)
    assert caught.value.slug == "not-utf8"
    assert [each.content for each in open_corpus(path, skip_bad=True)] == ["a", "c"]


def test_columns_that_are_not_there_or_no_text_are_refused(tmp_path, parquet):
    path = parquet(tmp_path / "a.parquet", txt=["a"], n=[1], listed=[[1]])
    with pytest.raises(UnknownNameError) as caught:
        open_corpus(path)
    assert "did you mean 'txt'?" in caught.value.hint
    for how in ({"column": "n"}, {"column": "txt", "id": "listed"}):
        with pytest.raises(SourceError, match="expected text in column") as caught:
            open_corpus(path, **how)
        assert caught.value.slug == "column-kind"


def test_damage_and_other_formats_are_named(tmp_path, parquet):
    path = parquet(tmp_path / "a.parquet", text=["a"] * 100)
    raw = path.read_bytes()
    path.write_bytes(raw[:-10])
    with pytest.raises(SourceError) as caught:
        open_corpus(path)
    assert caught.value.slug == "file-damaged"
    path.write_bytes(b"text")
    with pytest.raises(SourceError) as caught:
        open_corpus(path)
    assert caught.value.slug == "file-kind"


def test_the_fingerprint_is_of_the_texts_and_not_of_their_packing(tmp_path, texts):
    import pyarrow.parquet as pq

    table = pa.table({"text": texts, "other": range(len(texts))})
    pq.write_table(table, tmp_path / "a.parquet", compression="none")
    pq.write_table(table.select(["text"]), tmp_path / "b.parquet", compression="zstd")
    one, other = (open_corpus(tmp_path / each) for each in ("a.parquet", "b.parquet"))
    assert one.fingerprint == other.fingerprint
    pq.write_table(pa.table({"text": texts[1:]}), tmp_path / "c.parquet")
    assert open_corpus(tmp_path / "c.parquet").fingerprint != one.fingerprint


def test_every_cut_of_a_file_is_refused(tmp_path, parquet):
    raw = parquet(tmp_path / "a.parquet", text=["a", "b"]).read_bytes()
    for end in range(1, len(raw), 7):
        (tmp_path / "a.parquet").write_bytes(raw[:end])
        with pytest.raises(IsoscopeError):
            open_corpus(tmp_path / "a.parquet")
