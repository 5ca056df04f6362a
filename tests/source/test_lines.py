"""Lines, records and batches of them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import SourceError
from isoscope.source import lines as module
from isoscope.source.lines import batched, lines, records


def test_lines_are_numbered_and_blank_ones_left_out():
    stream = io.BytesIO(b"\xef\xbb\xbfa\r\n\n  \nb\n\r\nc")
    assert list(lines(stream, "f")) == [(1, b"a"), (4, b"b"), (6, b"c")]


def test_a_long_line_is_refused_before_it_is_held(monkeypatch):
    monkeypatch.setattr(module, "MAX_LINE", 10)
    assert len(list(lines(io.BytesIO(b"123456789\n"), "f"))) == 1
    with pytest.raises(SourceError, match="line 1"):
        list(lines(io.BytesIO(b"x" * 1000), "f"))


def test_a_quoted_cell_joins_lines():
    found = records([(1, b'a,"b'), (2, b"c"), (3, b'd""e"'), (4, b'"f"')], "f")
    assert list(found) == [(1, b'a,"b\nc\nd""e"'), (4, b'"f"')]


@given(
    sizes=st.lists(st.integers(0, 9), max_size=30),
    limit=st.integers(1, 5),
    most=st.integers(1, 20),
)
def test_batches_lose_nothing_and_keep_their_bounds(sizes, limit, most):
    numbered = [(i, b"x" * size) for i, size in enumerate(sizes)]
    found = list(batched(numbered, limit, most))
    assert [each for batch in found for each in batch] == numbered
    for batch in found:
        assert 0 < len(batch) <= limit
        assert sum(len(line) for _, line in batch[:-1]) < most
