"""The nouns every folder shares, and what becomes of an array of any type."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope import types
from isoscope.types import Array, Chunk, Curve, Note, Reading, SinkShare, SpectrumCurve, as_rows

NARROW = ["float16", "int8", "uint8", "int16", "uint16", "bool"]
WIDE = ["int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_will_do_are_not_copied(dtype):
    rows = np.ones((3, 2), dtype=dtype)
    assert as_rows(rows) is rows


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_rows_become_float32(dtype):
    rows = as_rows(np.ones((3, 2), dtype=dtype))
    assert rows.dtype == np.float32 and (rows == 1).all()


@pytest.mark.parametrize("dtype", WIDE)
def test_wide_whole_numbers_become_float64(dtype):
    assert as_rows(np.ones((3, 2), dtype=dtype)).dtype == np.float64


def test_long_doubles_become_float64():
    assert as_rows(np.ones((3, 2), dtype=np.longdouble)).dtype == np.float64


def test_lists_of_rows_are_rows():
    assert as_rows([[1, 2], [3, 4]]).dtype == np.float64
    assert as_rows([[0.5, 2], [3, 4]]).tolist() == [[0.5, 2], [3, 4]]


@given(value=st.integers(-(2**15), 2**15 - 1))
def test_no_narrow_number_is_rounded(value):
    assert int(as_rows(np.array([[value]], dtype=np.int16))[0, 0]) == value


@given(value=st.integers(-(2**31), 2**31 - 1))
def test_no_wide_number_is_rounded(value):
    assert int(as_rows(np.array([[value]], dtype=np.int32))[0, 0]) == value


@given(value=st.floats(width=16, allow_nan=False))
def test_no_half_precision_number_is_rounded(value):
    assert as_rows(np.array([[value]], dtype=np.float16))[0, 0] == value


def test_a_chunk_is_as_long_as_its_rows():
    chunk = Chunk(np.ones((5, 2)), "a", 10)
    assert len(chunk) == 5 and chunk.documents is None and chunk.place == ""


@pytest.mark.parametrize(
    "thing",
    [
        Chunk(np.ones((1, 1)), "a", 0),
        Reading("r", "rows", "all", "", None, "isoscore", 0.5, 0.4, 0.6, 9, 3),
        Curve("rows", "all"),
        SpectrumCurve("rows", "all", np.ones(2), np.ones(2), np.ones(2), 9.0),
        SinkShare("rows", "all", 0.9, 3, 9, 3),
        Note("isoscore", "Evenness.", "(PR - 1) / (d - 1)", "rudman2022", "Few rows."),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_nouns_do_not_change(thing):
    name = dataclasses.fields(thing)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(thing, name, None)


def test_a_reading_has_the_columns_of_every_table():
    names = [field.name for field in dataclasses.fields(Reading)]
    expected = "run site variant group step measure value low high n d warnings"
    assert " ".join(names) == expected


def test_a_reading_has_no_warnings_unless_there_are_some():
    reading = Reading("r", "rows", "all", "", None, "isoscore", 0.5, None, None, 9, 3)
    assert reading.warnings == ()


def curves():
    """Return every kind of curve."""
    kinds = (each for each in vars(types).values() if isinstance(each, type))
    return [each for each in kinds if issubclass(each, Curve) and each is not Curve]


def test_every_curve_is_of_a_site_and_a_variant_and_frozen():
    assert len(curves()) == 7
    for kind in curves():
        names = [field.name for field in dataclasses.fields(kind)]
        assert names[:2] == ["site", "variant"]
        assert kind.__dataclass_params__.frozen, kind


def test_words_of_curves_are_not_in_arrays():
    """A page escapes strings and tuples of a curve; in an array it would not find them."""
    for kind in curves():
        for field in dataclasses.fields(kind):
            assert field.type is Array or "Array" not in str(field.type), (kind, field.name)


def test_a_reading_is_biased_if_a_warning_says_so():
    fields = ("a", "rows", "all", "", None, "isoscore", 0.5, None, None, 9, 3)
    assert Reading(*fields, ("few", "n < d (9 rows): the spectrum is biased")).biased
    assert not Reading(*fields, ("no interval: 3 documents",)).biased
