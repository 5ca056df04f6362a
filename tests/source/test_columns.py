"""Columns by name, by several names, by pattern."""

import numpy as np
import pytest

from isoscope.errors import IsoscopeError, SourceError
from isoscope.source.columns import (
    check_labels,
    match_columns,
    only_column,
)
from isoscope.source.named_arrays import label_arrays, vectors_array
from isoscope.source.npy import ArrayHeader
from isoscope.source.row_source import VectorRequest

NAMES = ["id", "e0", "e1", "e10", "a,b", "x*"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("e1", ["e1"]),
        ("e*", ["e0", "e1", "e10"]),
        ("e10, e0", ["e10", "e0"]),
        ("e?,id", ["e0", "e1", "id"]),
        ("e*,e0", ["e0", "e1", "e10"]),
        ("a,b", ["a,b"]),
        ("x*", ["x*"]),
    ],
)
def test_what_a_name_stands_for(asked, found):
    assert match_columns(asked, NAMES) == found


def test_each_name_of_several_has_to_be_there():
    with pytest.raises(IsoscopeError, match="no column is called 'e99'"):
        match_columns("e0,e99", NAMES)


def test_the_only_one_or_the_preferred_one():
    assert only_column(["x"], "t") == "x"
    assert only_column(["x", "vectors", "embedding"], "t") == "embedding"
    with pytest.raises(SourceError, match="expected one column of vectors in t, got 2"):
        only_column(["x", "y"], "t")


def test_labels_have_to_be_there():
    check_labels(VectorRequest(document="a", id="b"), ["a", "b"])
    with pytest.raises(IsoscopeError, match="no column is called 'text'"):
        check_labels(VectorRequest(text="text"), ["texts"])


def arrays(**shapes):
    return {
        name: ArrayHeader(shape, np.dtype(dtype), False, 0)
        for name, (shape, dtype) in shapes.items()
    }


def test_the_only_matrix_of_numbers_is_read():
    held = arrays(x=((3, 2), "f4"), names=((3, 2), "U4"), bias=((2,), "f4"))
    assert vectors_array(held, VectorRequest(), "f") == "x"
    assert (
        vectors_array(
            arrays(x=((3, 2), "f4"), d=((3, 2), "i4")), VectorRequest(document="d"), "f"
        )
        == "x"
    )


def test_one_array_is_judged_by_its_own_fault():
    with pytest.raises(SourceError, match=r"in f\[x\], got 1 dimension"):
        vectors_array(arrays(x=((3,), "f4")), VectorRequest(), "f")


def test_a_wrong_name_is_corrected():
    with pytest.raises(IsoscopeError, match="no array is called 'embed'") as caught:
        vectors_array(arrays(embeds=((3, 2), "f4")), VectorRequest(column="embed"), "f")
    assert "did you mean 'embeds'" in caught.value.hint
    with pytest.raises(IsoscopeError, match="no array is called 'doc'"):
        label_arrays(arrays(x=((3, 2), "f4")), VectorRequest(document="doc"), 3, "f")


def test_labels_are_one_a_row():
    held = arrays(x=((3, 2), "f4"), d=((3,), "i8"), t=((3,), "U9"), far=((3,), "U999999"))
    asked = VectorRequest(document="d", text="t")
    assert label_arrays(held, asked, 3, "f") == {"document": "d", "text": "t"}
    with pytest.raises(SourceError, match="expected 4 documents"):
        label_arrays(held, asked, 4, "f")
    with pytest.raises(SourceError, match="expected strings or integers"):
        label_arrays(held, VectorRequest(id="far"), 3, "f")
