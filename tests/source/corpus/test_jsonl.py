"""jsonl: an object a line, one field of which is the text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import IsoscopeError, SourceError, UnknownNameError
from isoscope.source.corpus import open_corpus


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


def test_blank_lines_are_no_documents_and_empty_texts_are_left_out(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"text": "a"}\n\n{"text": " "}\n{"text": "b"}\n')
    corpus = open_corpus(path)
    assert [each.id for each in corpus] == ["a.jsonl:0", "a.jsonl:1"]
    assert corpus.document(1).place.endswith("line 5")
    assert corpus.warnings == [f"empty documents left out: 1 (first: {path}, line 4)"]


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
def test_a_bad_line_is_named_or_left_out(tmp_path, line, got):
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
    assert caught.value.hint == "--column names one of: body, title"


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
