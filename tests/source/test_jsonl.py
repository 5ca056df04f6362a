"""jsonl: lists and objects, and lines that are neither."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoscope.errors import IsoscopeError, RowError, SourceError
from isoscope.source import lines, open_source

anything = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(allow_nan=True, allow_infinity=True),
)


@given(rows=anything, named=st.booleans(), size=st.integers(1, 7))
def test_what_python_writes_is_read_exactly(rows, named, size, tmp_path_factory, whole):
    path = tmp_path_factory.getbasetemp() / "rows.jsonl"
    listed = rows.tolist()
    path.write_text(
        "\n".join(json.dumps({"id": 1, "vector": each} if named else each) for each in listed)
    )
    np.testing.assert_array_equal(whole(open_source(path), size), rows)


@pytest.mark.parametrize(
    "text", ["[1, 2]\n[3, 4]", "\ufeff[1,2]\r\n\r\n[3,4]\r\n", "\n [1,2]\n\n[3,4]"]
)
def test_blank_lines_a_mark_and_windows_line_ends_are_fine(text, tmp_path, whole):
    (tmp_path / "v.jsonl").write_bytes(text.encode())
    np.testing.assert_array_equal(whole(open_source(tmp_path / "v.jsonl")), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("fields", "asked", "width"),
    [
        ({"id": 3, "x": [1, 2], "tags": ["a"]}, None, 2),
        ({"tokens": [1, 2, 3], "embedding": [1, 2]}, None, 2),
        ({"tokens": [1, 2, 3], "embedding": [1, 2]}, "tokens", 3),
        ({'a"b': [1, 2], "c": 1}, 'a"b', 2),
        ({"é": [1, 2]}, None, 2),
    ],
)
def test_the_field_is_found(fields, asked, width, tmp_path, whole):
    (tmp_path / "v.jsonl").write_text(f"{json.dumps(fields)}\n" * 2)
    source = open_source(tmp_path / "v.jsonl", column=asked)
    assert source.width == width and whole(source).shape == (2, width)


def test_several_fields_have_to_be_chosen_from(tmp_path):
    (tmp_path / "v.jsonl").write_text('{"title": [1], "body": [2]}')
    with pytest.raises(SourceError, match="got 2") as caught:
        open_source(tmp_path / "v.jsonl")
    assert "title, body" in caught.value.hint


def test_a_wrong_field_is_corrected(tmp_path):
    (tmp_path / "v.jsonl").write_text('{"title": [1], "body": [2]}')
    with pytest.raises(IsoscopeError, match="no column is called 'bodyx'"):
        open_source(tmp_path / "v.jsonl", column="bodyx")
    with pytest.raises(IsoscopeError, match="no column is called 'dok'"):
        open_source(tmp_path / "v.jsonl", column="body", document="dok")


def test_lists_have_no_fields(tmp_path):
    (tmp_path / "v.jsonl").write_text("[1, 2]")
    with pytest.raises(SourceError, match="got lists without names"):
        open_source(tmp_path / "v.jsonl", column="x")


BAD = [
    ("[1]", "1"),
    ("[1, 2, 3]", "3"),
    ('[1, "2"]', "a string among them"),
    ("[1, null]", r"nothing \(null\) among them"),
    ("[1, true]", "true or false among them"),
    ("[[1], [2]]", "a list among them"),
    ("{}", "an object"),
    ("7", "a number"),
    ("[1, 2", "a line that is not JSON"),
    ("nonsense", "a line that is not JSON"),
    ("[1, 1" + "0" * 400 + "]", "a number beyond float64"),
    ("[" * 100_000, "a line that is not JSON"),
    (b"[1, 2] \xff", "bytes that are not UTF-8"),
]


@pytest.mark.parametrize(("line", "got"), BAD)
def test_a_line_that_is_no_row_is_named_or_dropped(line, got, tmp_path, whole):
    raw = line if isinstance(line, bytes) else line.encode()
    path = tmp_path / "v.jsonl"
    path.write_bytes(b"[1, 2]\n\n" + raw + b"\n[3, 4]\n")
    with pytest.raises(RowError, match=rf"expected 2 numbers in line 3 of .*, got {got}"):
        whole(open_source(path))
    source = open_source(path, skip_bad=True)
    np.testing.assert_array_equal(whole(source), [[1, 2], [3, 4]])
    assert source.skipped == 1
    assert list(next(source.chunks()).ordinals) == [0, 2]


@pytest.mark.parametrize(
    ("line", "got"), [each for each in BAD if each[0] not in ("[1]", "[1, 2, 3]")]
)
def test_a_first_line_that_is_no_row_is_named_or_dropped(line, got, tmp_path, whole):
    raw = line if isinstance(line, bytes) else line.encode()
    path = tmp_path / "v.jsonl"
    path.write_bytes(raw + b"\n[3, 4]\n")
    with pytest.raises(RowError, match=rf"expected a list of numbers in line 1 .*got {got}"):
        open_source(path)
    np.testing.assert_array_equal(whole(open_source(path, skip_bad=True)), [[3, 4]])


@pytest.mark.parametrize(
    ("line", "got"),
    [
        ('{"v": [1, 2]}', "no document"),
        ('{"v": [1, 2], "d": null}', "no document"),
        ('{"v": [1, 2], "d": 1.5}', "a number as document"),
        ('{"v": [1, 2], "d": true}', "true or false as document"),
        ('{"d": "a"}', "no field 'v'"),
        ('{"v": "a", "d": "a"}', "a string"),
        ("[1, 2]", "a list"),
    ],
)
def test_an_object_without_its_fields_is_named_or_dropped(line, got, tmp_path, whole):
    path = tmp_path / "v.jsonl"
    path.write_text(f'{{"v": [1, 2], "d": "a"}}\n{line}\n')
    with pytest.raises(RowError, match=f"line 2 of .*got {got}"):
        whole(open_source(path, document="d"))
    source = open_source(path, document="d", skip_bad=True)
    assert len(whole(source)) == 1 and source.skipped == 1


def test_numbers_and_words_as_documents_mix(tmp_path, labels):
    path = tmp_path / "v.jsonl"
    path.write_text(
        "".join(f'{{"v": [1], "d": {d}}}\n' for d in ("1", '"1"', "2", '"b"', str(10**30)))
    )
    found = labels(open_source(path, document="d"), 2)["documents"]
    assert [str(each) for each in found] == ["1", "1", "2", "b", str(10**30)]


def test_not_a_number_is_left_to_whoever_measures(tmp_path, whole):
    (tmp_path / "v.jsonl").write_text("[NaN, 1]\n[Infinity, -Infinity]")
    found = whole(open_source(tmp_path / "v.jsonl"))
    assert math.isnan(found[0, 0]) and np.isinf(found[1]).all()


def test_a_line_without_end_is_refused(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    (tmp_path / "v.jsonl").write_text("[1, 2]\n[" + "1, " * 50 + "1]")
    with pytest.raises(SourceError, match="got more in line 2") as caught:
        whole(open_source(tmp_path / "v.jsonl"))
    assert caught.value.slug == "line-too-long"


def test_nothing_but_bad_lines_ends(tmp_path):
    (tmp_path / "v.jsonl").write_text("x\n" * 5000)
    with pytest.raises(RowError, match="line 1001"):
        open_source(tmp_path / "v.jsonl", skip_bad=True)
    (tmp_path / "v.jsonl").write_text("x\n" * 5)
    with pytest.raises(SourceError, match="got 0 rows"):
        open_source(tmp_path / "v.jsonl", skip_bad=True)
