"""csv and tsv: a record a document, one cell of which is the text."""

import pytest

from isoscope.errors import SourceError, UnknownNameError
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.csv import heads, records
from isoscope.source.corpus.held import OnDisk


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
def test_a_bad_record_is_named_or_left_out(tmp_path, raw, got):
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


def test_records_and_heads_are_what_they_say(tmp_path):
    held = OnDisk(written(tmp_path, b' a ,"b\nc"\n1,2\n'))
    assert heads(held, tabbed=False) == ["a", "b\nc"]
    assert [each.number for each in records(held)] == [1, 3]
    assert heads(OnDisk(written(tmp_path, b"a\tb,c\n")), tabbed=True) == ["a", "b,c"]


def test_a_label_that_looks_like_a_number_of_a_column_is_no_header(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("one long string of cliches\t0\na good film\t1\n")
    corpus = open_corpus(path, column="0", label="1")
    assert [(each.content, each.label) for each in corpus] == [
        ("one long string of cliches", "0"),
        ("a good film", "1"),
    ]
