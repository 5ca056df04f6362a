"""Lines, records and batches of them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import SourceError
from isoscope.source import lines as module
from isoscope.source.lines import RawRecord, batches_of, csv_records, filled_lines, row_too_long


def test_lines_are_numbered_and_blank_ones_left_out():
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
