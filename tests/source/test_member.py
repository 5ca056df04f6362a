"""Which array of several is read."""

import numpy as np
import pytest

from isoscope.errors import IsoscopeError, SourceError
from isoscope.source.header import Header
from isoscope.source.member import label_members, vectors_member
from isoscope.source.source import Wanted


def arrays(**shapes):
    return {
        name: Header(shape, np.dtype(dtype), False, 0)
        for name, (shape, dtype) in shapes.items()
    }


def test_the_only_matrix_of_numbers_is_read():
    held = arrays(x=((3, 2), "f4"), names=((3, 2), "U4"), bias=((2,), "f4"))
    assert vectors_member(held, Wanted(), "f") == "x"
    assert (
        vectors_member(arrays(x=((3, 2), "f4"), d=((3, 2), "i4")), Wanted(document="d"), "f")
        == "x"
    )


def test_one_array_is_judged_by_its_own_fault():
    with pytest.raises(SourceError, match=r"in f\[x\], got 1 dimension"):
        vectors_member(arrays(x=((3,), "f4")), Wanted(), "f")


def test_a_wrong_name_is_corrected():
    with pytest.raises(IsoscopeError, match="no array is called 'embed'") as caught:
        vectors_member(arrays(embeds=((3, 2), "f4")), Wanted(column="embed"), "f")
    assert "did you mean 'embeds'" in caught.value.hint
    with pytest.raises(IsoscopeError, match="no array is called 'doc'"):
        label_members(arrays(x=((3, 2), "f4")), Wanted(document="doc"), 3, "f")


def test_labels_are_one_a_row():
    held = arrays(x=((3, 2), "f4"), d=((3,), "i8"), t=((3,), "U9"), far=((3,), "U999999"))
    asked = Wanted(document="d", text="t")
    assert label_members(held, asked, 3, "f") == {"document": "d", "text": "t"}
    with pytest.raises(SourceError, match="expected 4 documents"):
        label_members(held, asked, 4, "f")
    with pytest.raises(SourceError, match="expected strings or integers"):
        label_members(held, Wanted(id="far"), 3, "f")
