"""Labels beside the vectors: as many as rows, whatever they are kept in."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from isoscope.errors import SourceError
from isoscope.source import open_source
from isoscope.source.columns import add_labels, as_documents, as_strings
from isoscope.types import Chunk

ROWS = np.ones((5, 2))
NUMBERS = [1, 1, 2, 2, 3]
WORDS = ["a", "a", "b", "b", "long" * 9]


@pytest.mark.parametrize("values", [NUMBERS, WORDS])
@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        pa.array,
        lambda v: pd.Series(v, dtype=object),
    ],
)
def test_any_sequence_serves(values, make, labels):
    source = open_source(ROWS, document=make(values), id=make(values))
    found = labels(source, 2)
    assert [str(each) for each in found["documents"]] == [str(each) for each in values]
    assert found["ids"] == [str(each) for each in values]


def test_a_tensor_serves(labels):
    found = labels(open_source(torch.ones(5, 2), document=torch.tensor(NUMBERS)))
    assert found["documents"] == NUMBERS


@pytest.mark.parametrize("values", [NUMBERS, WORDS, [each.encode() for each in WORDS]])
def test_an_npy_serves_and_is_known_by_its_suffix(values, tmp_path, labels):
    path = tmp_path / "doc.npy"
    np.save(path, np.array(values))
    for given in (path, str(path)):
        found = labels(open_source(ROWS, document=given), 2)["documents"]
        assert [str(each) for each in found] == [
            each.decode() if isinstance(each, bytes) else str(each) for each in values
        ]


@pytest.mark.parametrize("count", [4, 6])
def test_another_number_of_labels_is_refused(count):
    with pytest.raises(SourceError, match=f"expected 5 documents, .* got {count}"):
        open_source(ROWS, document=list(range(count)))


@pytest.mark.parametrize(
    ("count", "words"), [(4, "got none for row 4"), (6, "expected 5 documents")]
)
def test_another_number_than_a_file_turns_out_to_have_is_refused(count, words, whole):
    source = open_source(io.BytesIO(b"1,2\n" * 5), document=list(range(count)))
    with pytest.raises(SourceError, match=words):
        whole(source)


def test_labels_stay_with_their_rows_when_others_are_dropped(tmp_path, labels):
    (tmp_path / "v.csv").write_text("a,b\n1,2\nx,y\n3,4\n5\n")
    source = open_source(
        tmp_path / "v.csv", document=[1, 2, 3, 4], text=list("pqrs"), skip_bad=True
    )
    found = labels(source)
    assert found["documents"] == [1, 3] and found["texts"] == ["p", "r"] and source.skipped == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.ones(5), "got an array of float64"),
        (np.ones((5, 1), dtype=int), r"of shape \(5, 1\)"),
        (np.array(3), r"of shape \(\)"),
    ],
)
def test_labels_of_another_kind_are_refused(values, words, tmp_path):
    with pytest.raises(SourceError, match=words):
        open_source(ROWS, document=values)
    np.save(tmp_path / "d.npy", values)
    with pytest.raises(SourceError, match=words):
        open_source(ROWS, document=tmp_path / "d.npy")


def test_a_bad_label_file_is_refused(tmp_path):
    path = tmp_path / "d.npy"
    with pytest.raises(SourceError, match="expected a file"):
        open_source(ROWS, document=path)
    np.save(path, np.array(["a", None], dtype=object), allow_pickle=True)
    with pytest.raises(SourceError, match="pickle"):
        open_source(ROWS, document=path)
    np.save(path, np.arange(5))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SourceError, match="expected 168 bytes"):
        open_source(ROWS, document=path)
    np.save(path, np.arange(0))
    with pytest.raises(SourceError, match="expected 5 documents"):
        open_source(ROWS, document=path)


def test_unsorted_labels_are_refused(whole):
    with pytest.raises(SourceError, match="document '1' again in row 4"):
        whole(open_source(ROWS, document=[1, 1, 2, 2, 1]))


def test_labels_are_counted_for_a_segment_as_for_the_whole(tmp_path, cloud, write):
    write(tmp_path / "a.npy", cloud(n=3))
    path = write(tmp_path / "b.parquet", cloud(n=8), row_group_size=4)
    np.save(tmp_path / "doc.npy", np.arange(11))
    source = open_source(tmp_path, document=tmp_path / "doc.npy")
    segments = source.segments(4)
    assert [sum(map(len, source.chunks(2, each))) for each in segments] == [7, 4]
    write(path, cloud(n=7), row_group_size=4)  # one row fewer than when it was opened
    with pytest.raises(SourceError, match=r"expected 7 documents, .* of .*b\.parquet"):
        list(source.chunks(segment=segments[1]))
    with pytest.raises(SourceError, match="expected 7 documents"):
        list(source.chunks())
    write(path, cloud(n=9), row_group_size=4)
    with pytest.raises(SourceError, match="got none for row 8"):
        list(source.chunks(segment=segments[1]))


def test_labels_beside_one_uncounted_file_are_counted_through_its_segment(tmp_path):
    (tmp_path / "v.csv").write_text("1,2\n" * 5)
    np.save(tmp_path / "doc.npy", np.arange(6))
    source = open_source(tmp_path / "v.csv", document=tmp_path / "doc.npy")
    (segment,) = source.segments(2)
    with pytest.raises(SourceError, match="expected 5 documents"):
        list(source.chunks(segment=segment))


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (np.array([1, 2], dtype=np.int8), [1, 2], "i"),
        (np.array([1, 2], dtype=np.uint64), [1, 2], "u"),
        ([1, 2], [1, 2], "i"),
        (["a", "b"], ["a", "b"], "O"),
        ([1, "b"], ["1", "b"], "O"),
        ([10**30, 1], [str(10**30), "1"], "O"),
        (np.array(["a", "bc"]), ["a", "bc"], "O"),
        (np.array([b"a", "é".encode()]), ["a", "é"], "O"),
        (np.array(["a", 1], dtype=object), ["a", "1"], "O"),
        ([], [], "O"),
    ],
)
def test_documents_are_integers_or_python_strings(values, expected, kind):
    found = as_documents(values, "f")
    assert found.tolist() == expected and found.dtype.kind == kind


@pytest.mark.parametrize("values", [[1.5], [None], [True], [("a",)], np.array([1.0])])
def test_other_documents_are_refused(values):
    with pytest.raises(SourceError, match="expected strings or integers as documents of f"):
        as_documents(values, "f")


def test_ids_and_texts_are_strings():
    assert as_strings([1, None, "a", 2.5]) == ["1", "", "a", "2.5"]
    assert as_strings(np.array([b"x"])) == ["x"]


def test_labels_by_role_are_those_of_a_chunk():
    chunk = Chunk(np.ones((1, 2)), "s", 3, place="f")
    found = add_labels(chunk, {"document": [1], "id": [2]})
    assert found.documents.tolist() == [1] and found.ids == ["2"] and found.texts is None
    assert (found.source, found.start, found.place) == ("s", 3, "f")
