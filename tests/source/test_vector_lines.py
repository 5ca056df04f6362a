"""Headers, separators and cells."""

import pytest

from isoscope.errors import RowError
from isoscope.source.bytes import TemporaryBytes
from isoscope.source.csv import split_cells
from isoscope.source.faults import BadEncodingError, BadRecordError
from isoscope.source.lines import RawRecord
from isoscope.source.request import VectorRequest
from isoscope.source.row_source import PassCounts
from isoscope.source.vector_lines import (
    LineFormat,
    csv_columns,
    is_header,
    parse_batch,
    parse_list,
    parse_number,
)


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
def test_a_header_is_told_from_numbers(cells, header):
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


def parsed(width, roles=(), *, start=0, counts=None, skip_bad=False):
    lines = LineFormat(width, roles, "", iter, parse)
    request = VectorRequest(skip_bad=skip_bad)
    data = TemporaryBytes("s", "f")
    return parse_batch(data, request, lines, BATCH, start, counts or PassCounts())


def test_lines_that_are_no_rows_are_dropped_and_counted():
    counts = PassCounts()
    chunk = parsed(2, ("document", "id"), start=10, counts=counts, skip_bad=True)
    assert chunk.rows.tolist() == [[1, 2], [3, 4]] and counts.skipped == 1
    assert list(chunk.ordinals) == [10, 12] and list(chunk.documents) == ["d", "d"]
    assert chunk.ids == ["1 2", "3 4"] and chunk.texts is None


def test_or_refused_by_their_number():
    with pytest.raises(RowError, match="expected 2 numbers in line 4 of f, got a word"):
        parsed(2)
    with pytest.raises(RowError, match="expected 3 numbers in line 3 of f, got 2"):
        parsed(3)
