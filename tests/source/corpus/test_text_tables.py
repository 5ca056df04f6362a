"""csv and tsv: a record a document, one cell of which is the text."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import IsoscopeError, SourceError, UnknownNameError
from isoscope.source.bytes import FileBytes
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.text_tables import csv_header, tsv_header


def written(tmp_path, raw, name="a.csv"):
    (tmp_path / name).write_bytes(raw)
    return tmp_path / name


def test_cells_may_be_quoted_and_go_over_lines(tmp_path):
    raw = b'id,text\r\n1,plain\r\n2,"one, ""two""\r\n\r\nthree"\r\n\r\n3,last'
    corpus = open_corpus(written(tmp_path, raw), id="id")
    assert [each.content for each in corpus] == ["plain", 'one, "two"\r\n\r\nthree', "last"]
    assert [each.id for each in corpus] == ["1", "2", "3"]
    assert [each.place[-6:] for each in corpus] == ["line 2", "line 3", "line 7"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_found_in_the_header(tmp_path, separator):
    raw = separator.join(["id", "text"]) + "\n" + separator.join(["x", "words"])
    assert open_corpus(written(tmp_path, raw.encode())).document(0).content == "words"


def test_quotes_in_a_tsv_are_text_unless_they_enclose_a_cell(tmp_path):
    raw = b'text\tsaid\nshe said "no\tx\n"a ""b"" c"\t"y\n"a" or "b"\tz\n'
    corpus = open_corpus(written(tmp_path, raw, "a.tsv"), target="said")
    assert [each.content for each in corpus] == ['she said "no', 'a "b" c', '"a" or "b"']
    assert [each.target for each in corpus] == ["x", '"y', "z"]


def test_a_file_without_a_header_is_read_by_number(tmp_path):
    corpus = open_corpus(written(tmp_path, b"a,b\nc,d\n"), column="1", target="0")
    assert [(each.content, each.target) for each in corpus] == [("b", "a"), ("d", "c")]
    with pytest.raises(UnknownNameError):
        open_corpus(written(tmp_path, b"a,b\nc,d\n"), column="2")


def test_a_missing_column_lists_the_columns(tmp_path):
    with pytest.raises(UnknownNameError) as caught:
        open_corpus(written(tmp_path, b"id,texts\n1,a\n"))
    assert "did you mean 'texts'?" in caught.value.hint


@pytest.mark.parametrize(
    ("raw", "got"),
    [
        (b"id,text\n1,a\n2\n3,c\n", "a record of 1 cells"),
        (b"id,text\n1,a\n2,caf\xe9\n3,c\n", "the byte 0xe9"),
    ],
)
def test_a_bad_record_is_named_or_skipped(tmp_path, raw, got):
    path = written(tmp_path, raw)
    with pytest.raises(SourceError, match=rf"line 3, got {got}\n"):
        open_corpus(path)
    assert [each.id for each in open_corpus(path, skip_bad=True)] == ["a.csv:0", "a.csv:2"]


def test_a_quote_without_end_is_refused(tmp_path):
    with pytest.raises(SourceError, match="got none after line 3") as caught:
        open_corpus(written(tmp_path, b'text\na\n"b\nc\n'))
    assert caught.value.slug == "csv-quote"


@pytest.mark.parametrize(
    ("raw", "slug"),
    [
        (b"\n\n", "corpus-empty"),
        (b"text\n", "corpus-empty"),
        (b"caf\xe9,text\na,b", "not-utf8"),
    ],
)
def test_a_file_without_records_or_header_is_refused(tmp_path, raw, slug):
    for name in ("a.csv", "a.tsv"):
        with pytest.raises(SourceError) as caught:
            open_corpus(written(tmp_path, raw, name))
        assert caught.value.slug == slug


def test_headers_are_what_they_say(tmp_path):
    held = FileBytes(written(tmp_path, b' a ,"b\nc"\n1,2\n'))
    assert csv_header(held) == ["a", "b\nc"]
    assert tsv_header(FileBytes(written(tmp_path, b"a\tb,c\n"))) == ["a", "b,c"]


def test_a_label_that_looks_like_a_number_of_a_column_is_no_header(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("one long string of cliches\t0\na good film\t1\n")
    corpus = open_corpus(path, column="0", label="1")
    assert [(each.content, each.label) for each in corpus] == [
        ("one long string of cliches", "0"),
        ("a good film", "1"),
    ]


def test_fields_become_text_target_and_id(tmp_path, jsonl):
    rows = [{"key": "x", "body": "café", "said": "coffee", "n": [1]}, {"key": 7, "body": "b"}]
    path = jsonl(tmp_path / "a.jsonl", rows)
    corpus = open_corpus(path, column="body", target="said", id="key")
    assert [(each.id, each.content, each.target) for each in corpus] == [
        ("x", "café", "coffee"),
        ("7", "b", None),
    ]
    assert corpus.document(1).place == f"{path}, line 2"
    assert [each.id for each in open_corpus(path, column="body")] == ["a.jsonl:0", "a.jsonl:1"]


def test_labels_come_along_and_may_be_missing(tmp_path, jsonl):
    rows = [{"text": "a", "y": True}, {"text": "b", "y": 2}, {"text": "c"}]
    path = jsonl(tmp_path / "a.jsonl", rows)
    assert [each.label for each in open_corpus(path, label="y")] == ["true", "2", None]
    assert open_corpus(path).document(0).label is None
    with pytest.raises(UnknownNameError, match="no column is called 'z'"):
        open_corpus(path, label="z")


def test_blank_lines_are_no_documents_and_empty_texts_are_skipped(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"text": "a"}\n\n{"text": " "}\n{"text": "b"}\n')
    corpus = open_corpus(path)
    assert [each.id for each in corpus] == ["a.jsonl:0", "a.jsonl:1"]
    assert corpus.document(1).place.endswith("line 5")
    assert corpus.warnings == [f"empty documents skipped: 1 (first: {path}, line 4)"]


def test_nan_in_another_field_does_no_harm(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"score": NaN, "text": "a"}')
    assert open_corpus(tmp_path / "a.jsonl").document(0).content == "a"


@pytest.mark.parametrize(
    ("line", "got"),
    [
        (b"nonsense", "a line that is not JSON"),
        (b'["text"]', "a list"),
        (b'{"other": "a"}', "no field 'text'"),
        (b'{"text": null}', r"nothing \(null\)"),
        (b'{"text": 3}', "a number"),
        (b'{"text": "caf\xe9"}', "other bytes"),
        (b'{"text": "\\ud800"}', "half of a surrogate pair"),
        (b"[" * 100_000, "a line that is not JSON"),
    ],
)
def test_a_bad_line_is_named_or_skipped(tmp_path, line, got):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n' + line + b'\n{"text": "c"}\n')
    with pytest.raises(SourceError, match=rf"a\.jsonl, line 2, got {got}\n"):
        open_corpus(path)
    corpus = open_corpus(path, skip_bad=True)
    assert [each.id for each in corpus] == ["a.jsonl:0", "a.jsonl:2"]
    assert len(corpus.warnings) == 1


@pytest.mark.parametrize("how", [{"column": "txt"}, {"target": "txt"}, {"id": "txt"}])
def test_a_column_that_is_not_there_is_suggested(tmp_path, jsonl, how):
    path = jsonl(tmp_path / "a.jsonl", [{"text": "a", "title": "b"}])
    with pytest.raises(UnknownNameError, match=r"'txt' in .*a\.jsonl") as caught:
        open_corpus(path, **how)
    assert "did you mean 'text'?" in caught.value.hint and "title" in caught.value.hint


def test_without_a_text_column_the_columns_are_listed(tmp_path, jsonl):
    path = jsonl(tmp_path / "a.jsonl", [{"body": "a", "title": "b"}])
    with pytest.raises(UnknownNameError) as caught:
        open_corpus(path, skip_bad=True)
    assert caught.value.hint == "name one with --column: body, title"


def test_lines_of_json_can_be_read_as_they_stand(tmp_path, jsonl):
    path = jsonl(tmp_path / "a.jsonl", [{"text": "a"}])
    assert open_corpus(path, per="line").document(0).content == '{"text": "a"}'


def test_other_columns_are_another_fingerprint(tmp_path, jsonl):
    path = jsonl(tmp_path / "a.jsonl", [{"text": "a", "title": "b"}])
    plain = open_corpus(path).fingerprint
    assert open_corpus(path, column="title").fingerprint != plain
    assert open_corpus(path, target="title").fingerprint != plain


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
lines = st.one_of(
    st.binary(max_size=40),
    values.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries({"text": values, "id": values}).map(lambda v: json.dumps(v).encode()),
)


@given(st.lists(lines, max_size=6), st.booleans(), st.sampled_from([None, "id"]))
def test_any_lines_are_read_or_refused(tmp_path_factory, rows, skip_bad, id):
    path = tmp_path_factory.mktemp("fuzz") / "a.jsonl"
    path.write_bytes(b"\n".join(rows))
    try:
        corpus = open_corpus(path, skip_bad=skip_bad, id=id)
        assert all(each.content.strip() and each.id for each in corpus)
    except IsoscopeError as error:
        assert error.slug and "\n" not in error.problem


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


def test_nulls_are_bad_and_empty_texts_are_skipped(tmp_path, parquet):
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
