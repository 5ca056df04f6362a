"""Lines into chunks."""

import pytest

from isoscope.errors import RowError
from isoscope.source.rowwise import BadLineError, Row, Rowwise
from isoscope.source.source import Tally

BATCH = [(3, b"1 2"), (4, b"x"), (7, b"3 4")]


def parse(line):
    try:
        return Row([float(each) for each in line.split()], document="d", id=line)
    except ValueError:
        raise BadLineError("a word") from None


def test_lines_that_are_no_rows_are_dropped_and_counted():
    tally = Tally()
    chunk = Rowwise("s", "f", 2, ("document", "id"), True).chunk(BATCH, 10, parse, tally)
    assert chunk.rows.tolist() == [[1, 2], [3, 4]] and tally.skipped == 1
    assert list(chunk.ordinals) == [10, 12] and list(chunk.documents) == ["d", "d"]


def test_or_refused_by_their_number():
    with pytest.raises(RowError, match="expected 2 numbers in line 4 of f, got a word"):
        Rowwise("s", "f", 2, (), False).chunk(BATCH, 0, parse, Tally())
    with pytest.raises(RowError, match="expected 3 numbers in line 3 of f, got 2"):
        Rowwise("s", "f", 3, (), False).chunk(BATCH, 0, parse, Tally())
