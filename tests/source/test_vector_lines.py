"""Headers, separators and cells."""

import pytest

from isoscope.source.cells import is_header, number, numbers, sheet, split
from isoscope.source.rowwise import BadLineError
from isoscope.source.source import Wanted


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
    assert number(cell) == value


@pytest.mark.parametrize("cell", ["[1, 2.5]", "[1. 2.5]", " [1\n 2.5] ", "[1,2.5,]"])
def test_lists_as_others_write_them(cell):
    assert numbers(cell) == [1, 2.5]


@pytest.mark.parametrize("cell", ["", "1, 2", "[1", "[1, a]", "[[1, 2]]"])
def test_what_is_no_list(cell):
    with pytest.raises(BadLineError):
        numbers(cell)


def test_splitting():
    assert split(b"a,b", ",") == ["a", "b"]
    assert split(b'"a,""b""",c', ",") == ['a,"b"', "c"]
    assert split("é\tb".encode(), "\t") == ["é", "b"]
    with pytest.raises(BadLineError, match="UTF-8"):
        split(b"\xff", ",")


def test_a_string_among_numbers_does_not_hide_its_column():
    plan = sheet([(1, b"a,b,t"), (2, b"1,x,y"), (3, b"1,2,z")], None, Wanted(), "f")
    assert plan.vector == (0, 1) and plan.headed and plan.width == 2


def test_lists_go_before_numbers():
    plan = sheet([(1, b"id,v"), (2, b'1,"[1, 2, 3]"')], None, Wanted(), "f")
    assert plan.vector == (1,) and plan.listed and plan.width == 3
