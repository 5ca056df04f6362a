"""What may be a text, a target, an id and a label."""

import pytest

from isoscope.source.corpus.fault import BadDocumentError, BadEncodingError
from isoscope.source.corpus.record import fields_of, unicode, worded


def test_numbers_become_ids_and_targets_but_not_texts():
    assert fields_of("a", 3, 7, named=True) == ("a", "3", "7", None)
    assert fields_of("a", "", 7, named=False) == ("a", None, None, None)
    assert fields_of("a", None, "x", named=True) == ("a", None, "x", None)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("good", "good"),
        (1, "1"),
        (True, "true"),
        (False, "false"),
        (0.5, "0.5"),
        (None, None),
        ("", None),
        (float("nan"), None),
    ],
)
def test_labels_are_words_and_a_gap_is_none(value, label):
    assert fields_of("a", None, None, value, named=False).label == label


def test_a_list_is_no_label():
    with pytest.raises(BadDocumentError, match=r"^a list as label$"):
        fields_of("a", None, None, [1], named=False)


@pytest.mark.parametrize(
    ("record", "got"),
    [
        ((3, None, "x"), "a number"),
        ((None, None, "x"), r"nothing \(null\)"),
        ((["a"], None, "x"), "a list"),
        (("a", {"b": 1}, "x"), "an object as target"),
        (("a", None, None), r"nothing \(null\) as id"),
        (("a", None, ""), "an empty string as id"),
        (("a", None, True), "true or false as id"),
        (("a", None, 1.5), "a number as id"),
    ],
)
def test_what_is_none_is_said(record, got):
    with pytest.raises(BadDocumentError, match=f"^{got}$"):
        fields_of(*record, named=True)


@pytest.mark.parametrize(
    "record", [("\ud800", None, "x"), ("a", "\udc00", "x"), ("a", b"b", "x")]
)
def test_half_characters_and_bytes_are_no_text(record):
    with pytest.raises(BadEncodingError):
        fields_of(*record, named=True)


def test_whole_characters_are():
    assert unicode("😀") == "😀" and worded({}) == "an object"
