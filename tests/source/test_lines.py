"""Lines, records and batches of them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import RowError, SourceError
from isoscope.source import lines as module
from isoscope.source.bytes import TemporaryBytes
from isoscope.source.csv import csv_columns, is_header, parse_list, parse_number, split_cells
from isoscope.source.file_errors import BadEncodingError, BadRecordError
from isoscope.source.lines import (
    RawRecord,
    batches_of,
    csv_records,
    filled_lines,
    line_source,
    row_too_long,
)
from isoscope.source.row_source import VectorRequest


def test_lines_are_numbered_and_blank_ones_skipped():
    stream = io.BytesIO(b"\xef\xbb\xbfa\r\n\n  \nb\n\r\nc")
    assert list(filled_lines(stream, "f", row_too_long)) == [
        (1, 3, b"a"),
        (4, 10, b"b"),
        (6, 14, b"c"),
    ]


def test_a_long_line_is_refused_before_it_is_held(monkeypatch):
    monkeypatch.setattr(module, "MAX_LINE", 10)
    assert len(list(filled_lines(io.BytesIO(b"123456789\n"), "f", row_too_long))) == 1
    with pytest.raises(SourceError, match="line 1"):
        list(filled_lines(io.BytesIO(b"x" * 1000), "f", row_too_long))


def test_a_quoted_cell_joins_lines():
    stream = io.BytesIO(b'a,"b\n\nc\r\nd""e"\r\n\n"f"\n')
    first = b'a,"b\n\nc\r\nd""e"'
    found = csv_records(stream, "f", row_too_long)
    assert list(found) == [(1, 0, first), (6, len(first) + 3, b'"f"')]


@given(st.binary(max_size=60).map(lambda raw: bytes(b'"\n\r,xy'[each % 6] for each in raw)))
def test_records_are_lines_joined_until_their_quotes_are_even(content):
    expected, lines = [], []
    for number, line in enumerate(_lines(content)):
        lines.append(line)
        if b"".join(lines).count(b'"') % 2 == 0:
            record = b"".join(lines)
            if record.strip():
                expected.append((number + 2 - len(lines), record.rstrip(b"\r\n")))
            lines = []
    # A buffer of two bytes: quotation marks and ends of lines fall on every edge of it.
    for stream in (io.BufferedReader(io.BytesIO(content), 2), io.BytesIO(content)):
        if lines:
            with pytest.raises(SourceError, match="closing quotation mark"):
                list(csv_records(stream, "f", row_too_long))
            continue
        found = list(csv_records(stream, "f", row_too_long))
        assert [(number, raw) for number, _, raw in found] == expected
        assert all(content[start:].startswith(raw) for _, start, raw in found)


def _lines(content):
    pieces = [piece + b"\n" for piece in content.split(b"\n")]
    return [*pieces[:-1], *([pieces[-1][:-1]] if pieces[-1] != b"\n" else [])]


def test_a_cell_of_many_lines_is_not_read_line_by_line():
    class Counted(io.BufferedReader):
        calls = 0

        def readline(self, size=-1):
            self.calls += 1
            return super().readline(size)

    stream = Counted(io.BytesIO(b'a,"' + b"x\n" * 100_000 + b'"\nb,c\n'))
    found = list(csv_records(stream, "f", row_too_long))
    assert [(number, len(raw)) for number, _, raw in found] == [(1, 200_004), (100_002, 3)]
    assert stream.calls < 10


@given(
    sizes=st.lists(st.integers(0, 9), max_size=30),
    limit=st.integers(1, 5),
    most=st.integers(1, 20),
)
def test_batches_lose_nothing_and_keep_their_bounds(sizes, limit, most):
    numbered = [RawRecord(i, 0, b"x" * size) for i, size in enumerate(sizes)]
    found = list(batches_of(numbered, limit, most))
    assert [each for batch in found for each in batch] == numbered
    for batch in found:
        assert 0 < len(batch) <= limit
        assert sum(len(line) for _, _, line in batch[:-1]) < most


def sample(*lines):
    return [RawRecord(i + 1, 0, line) for i, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("cells", "header"),
    [
        (["a", "b"], True),
        (["id", "0", "1"], True),
        (["", "0", "1"], True),
        (["0", "1", "2"], True),
        (["0", "1"], False),
        (["1", "2", "3"], False),
        (["0.5", "1"], False),
        (["doc1", "0.5", "1"], False),
        (["doc1", "nan", "1"], False),
        (["nan", "inf", "-1e5"], False),
    ],
)
def test_a_header_is_distinguished_from_numbers(cells, header):
    assert is_header(cells) == header


@pytest.mark.parametrize(
    ("cell", "value"), [("1", 1), (" -1.5e3 ", -1500), ("1_0", None), ("", None), ("x", None)]
)
def test_cells_are_numbers_or_not(cell, value):
    assert parse_number(cell) == value


@pytest.mark.parametrize("cell", ["[1, 2.5]", "[1. 2.5]", " [1\n 2.5] ", "[1,2.5,]"])
def test_lists_as_others_write_them(cell):
    assert parse_list(cell) == [1, 2.5]


@pytest.mark.parametrize("cell", ["", "1, 2", "[1", "[1, a]", "[[1, 2]]"])
def test_what_is_no_list(cell):
    with pytest.raises(BadRecordError):
        parse_list(cell)


def test_splitting():
    assert split_cells(b"a,b", ",") == ["a", "b"]
    assert split_cells(b'"a,""b""",c', ",") == ['a,"b"', "c"]
    assert split_cells("é\tb".encode(), "\t") == ["é", "b"]
    with pytest.raises(BadEncodingError, match="0xff"):
        split_cells(b"\xff", ",")


def test_a_string_among_numbers_does_not_hide_its_column():
    plan = csv_columns(sample(b"a,b,t", b"1,x,y", b"1,2,z"), None, VectorRequest(), "f")
    assert plan.vector == (0, 1) and plan.headed and plan.width == 2


def test_lists_go_before_numbers():
    plan = csv_columns(sample(b"id,v", b'1,"[1, 2, 3]"'), None, VectorRequest(), "f")
    assert plan.vector == (1,) and plan.listed and plan.width == 3


BATCH = [RawRecord(3, 0, b"1 2"), RawRecord(4, 4, b"x"), RawRecord(7, 6, b"3 4")]


def parse(line):
    try:
        return [float(each) for each in line.split()], {"document": "d", "id": line.decode()}
    except ValueError:
        raise BadRecordError("a word") from None


def parsed(width, **options):
    data = TemporaryBytes("s", "f")
    request = VectorRequest(**options)
    return line_source(data, request, width, "", lambda _: iter(BATCH), parse)


def test_lines_that_are_no_rows_are_dropped_and_counted():
    source = parsed(2, document="d", id="i", skip_bad=True)
    (chunk,) = source.chunks()
    assert chunk.rows.tolist() == [[1, 2], [3, 4]] and source.skipped == 1
    assert list(chunk.ordinals) == [0, 2] and list(chunk.documents) == ["d", "d"]
    assert chunk.ids == ["1 2", "3 4"] and chunk.texts is None


def test_or_refused_by_their_number():
    with pytest.raises(RowError, match="expected 2 numbers in line 4 of f, got a word"):
        list(parsed(2).chunks())
    with pytest.raises(RowError, match="expected 3 numbers in line 3 of f, got 2"):
        list(parsed(3).chunks())
