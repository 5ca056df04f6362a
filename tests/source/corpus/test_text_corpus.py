"""Texts that are pieces of a file: what is indexed, what is left out, how they are named."""

import os

import pytest

from isoscope.errors import SourceError
from isoscope.source.bytes import FileBytes
from isoscope.source.corpus.texts import TextCorpus, TextFields, check_unicode, text_fields
from isoscope.source.file_errors import BadEncodingError, BadRecordError
from isoscope.source.jsonl import describe_value
from isoscope.source.lines import RawRecord

RAW = b"one|!bad||two|?coded|three"


def parse(raw):
    if raw.startswith(b"!"):
        raise BadRecordError("something bad")
    if raw.startswith(b"?"):
        raise BadEncodingError("something coded")
    return TextFields(raw.decode(), "target", None)


def pieces():
    start = 0
    for number, raw in enumerate(RAW.split(b"|")):
        yield RawRecord(number + 10, start, raw)
        start += len(raw) + 1


@pytest.fixture
def held(tmp_path):
    (tmp_path / "a").write_bytes(RAW)
    return FileBytes(tmp_path / "a", "name", "place")


def test_bad_pieces_keep_their_ordinal_and_empty_ones_have_none(held):
    corpus = TextCorpus(held, pieces(), parse, "", skip_bad=True)
    found = [(each.id, each.content, each.place) for each in corpus]
    assert found == [
        ("name:0", "one", "place, line 10"),
        ("name:2", "two", "place, line 13"),
        ("name:4", "three", "place, line 15"),
    ]
    assert corpus.warnings == [
        "documents that cannot be read skipped: 1 (first: place, line 11)",
        "empty documents skipped: 1 (first: place, line 12)",
        "documents that are not UTF-8 skipped: 1 (first: place, line 14)",
    ]


def test_without_leave_the_first_bad_piece_is_an_error(held):
    with pytest.raises(SourceError, match="in place, row 11, got something bad"):
        TextCorpus(held, pieces(), parse, "", unit="row")


def test_ids_that_are_given_go_before_ordinals(held):
    def named(raw):
        return TextFields(raw.decode(), id=f"<{raw.decode()}>")

    corpus = TextCorpus(held, pieces(), named, "")
    assert [corpus.id(i) for i in range(2)] == ["<one>", "<!bad>"]
    assert corpus.document(4).id == "<three>" and len(corpus.keys()) == 5


def test_what_could_be_read_and_now_cannot_has_changed(held, tmp_path):
    corpus = TextCorpus(held, pieces(), parse, "", skip_bad=True)
    before = (tmp_path / "a").stat()
    (tmp_path / "a").write_bytes(b"!" + RAW[1:])  # within one tick of the clock
    os.utime(tmp_path / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SourceError, match="changed"):
        corpus.document(0)


def test_numbers_become_ids_and_targets_but_not_texts():
    assert text_fields("a", 3, 7, named=True) == ("a", "3", "7", None)
    assert text_fields("a", "", 7, named=False) == ("a", None, None, None)
    assert text_fields("a", None, "x", named=True) == ("a", None, "x", None)


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
    assert text_fields("a", None, None, value, named=False).label == label


def test_a_list_is_no_label():
    with pytest.raises(BadRecordError, match=r"^a list as label$"):
        text_fields("a", None, None, [1], named=False)


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
def test_what_is_none_is_reported(record, got):
    with pytest.raises(BadRecordError, match=f"^{got}$"):
        text_fields(*record, named=True)


@pytest.mark.parametrize(
    "record", [("\ud800", None, "x"), ("a", "\udc00", "x"), ("a", b"b", "x")]
)
def test_half_characters_and_bytes_are_no_text(record):
    with pytest.raises(BadEncodingError):
        text_fields(*record, named=True)


def test_whole_characters_are():
    assert check_unicode("😀") == "😀" and describe_value({}) == "an object"
