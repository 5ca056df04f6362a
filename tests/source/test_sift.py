"""NaN and infinity: found, named, left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoscope.errors import RowError
from isoscope.source.sift import bad_rows, ordinals, refuse, without
from isoscope.types import Chunk

anything = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
)


@given(rows=anything)
def test_exactly_the_rows_with_a_bad_number_are_found(rows):
    expected = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    chunk = Chunk(rows, "s", 0)
    np.testing.assert_array_equal(bad_rows(chunk), expected)
    with np.errstate(all="ignore"):
        squares = (rows * rows).sum(axis=1)
    np.testing.assert_array_equal(bad_rows(chunk, squares), expected)


def test_large_numbers_are_not_infinite():
    assert not len(bad_rows(Chunk(np.full((3, 4), 3e38, dtype=np.float32), "s", 0)))


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_the_row_and_the_file_are_named(value, word):
    rows = np.ones((3, 2))
    rows[1, 1] = value
    chunk = Chunk(rows, "s", 40, place="dir/v.npy")
    with pytest.raises(RowError, match=rf"row 41 of dir/v\.npy .*got {word}") as caught:
        refuse(chunk, 1)
    assert caught.value.slug == "row-not-finite" and "--skip-bad" in caught.value.hint
    with pytest.raises(RowError, match="row 7 of dir"):
        refuse(Chunk(rows, "s", 0, place="dir", ordinals=np.array([3, 7, 9])), 1)


def test_what_is_left_keeps_its_ordinals_and_labels():
    chunk = Chunk(
        np.arange(8.0).reshape(4, 2), "s", 10, np.array(list("aabb"), dtype=object),
        ids=list("wxyz"), texts=tuple("WXYZ"), place="f",
    )  # fmt: skip
    left = without(chunk, np.array([1]))
    assert list(ordinals(left)) == [10, 12, 13] and left.start == 10
    assert list(left.documents) == list("abb")
    assert left.ids == list("wyz") and left.texts == list("WYZ")
    again = without(left, np.array([0, 2]))
    assert list(ordinals(again)) == [12] and again.ids == ["y"]
    assert without(chunk, np.array([], dtype=int)) is chunk
