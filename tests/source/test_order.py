"""Documents that come back are noticed, and others never."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import SourceError
from isoscope.source.row_source import (
    DocumentOrder,
    UnsortedError,
    ordinals_of,
)
from isoscope.types import Chunk

names = st.lists(st.integers(0, 12), min_size=1, max_size=40)


def chunked(documents, size, as_text):
    values = (
        np.array([f"d{i}" for i in documents], dtype=object) if as_text else np.array(documents)
    )
    for at in range(0, len(values), size):
        piece = values[at : at + size]
        yield Chunk(np.zeros((len(piece), 1)), "s", at, piece, place="f")


def by_definition(documents):
    seen = set()
    for i, each in enumerate(documents):
        if i and each != documents[i - 1] and each in seen:
            return i
        seen.add(each)
    return None


@given(documents=names, size=st.integers(1, 10), as_text=st.booleans())
def test_the_first_row_that_comes_back_is_named(documents, size, as_text):
    expected = by_definition(documents)
    order = DocumentOrder()
    if expected is None:
        for each in chunked(documents, size, as_text):
            order.find_starts(each)
        return
    with pytest.raises(SourceError, match=rf"again in row {expected} of f"):
        for each in chunked(documents, size, as_text):
            order.find_starts(each)


def test_a_million_documents_take_a_few_megabytes():
    order = DocumentOrder()
    documents = np.random.default_rng(0).permutation(1_000_000)
    for chunk in chunked(documents, 5000, False):
        order.find_starts(chunk)
    assert sum(each.nbytes for each in order._runs) == 8_000_000
    assert len(order._runs) < 12
    with pytest.raises(UnsortedError, match="again in row 1 of f"):
        order.find_starts(
            Chunk(np.zeros((2, 1)), "s", 0, np.array([-1, documents[7]]), place="f")
        )


def test_chunks_without_documents_or_rows_pass():
    chunks = [Chunk(np.zeros((2, 1)), "s", 0), Chunk(np.zeros((0, 1)), "s", 2, np.array([]))]
    order = DocumentOrder()
    assert [len(order.find_starts(each)) for each in chunks] == [0, 0]


def test_the_rows_that_begin_a_document_are_found_across_chunks():
    order = DocumentOrder()
    found = [
        order.find_starts(each).tolist() for each in chunked([1, 1, 2, 2, 2, 3, 4, 4], 3, False)
    ]
    assert found == [[0, 2], [2], [0]]
    with pytest.raises(UnsortedError, match="document '2' again in row 0"):
        order.find_starts(
            Chunk(np.zeros((1, 1)), "s", 0, np.array(["2"], dtype=object), place="f")
        )


ROWS = np.zeros((3, 2), dtype=np.float32)


def test_rows_of_a_whole_chunk_are_counted_from_its_start():
    chunk = Chunk(ROWS, "a", 40)
    assert ordinals_of(chunk).tolist() == [40, 41, 42]


def test_rows_that_were_kept_keep_their_places():
    chunk = Chunk(ROWS, "a", 40, ordinals=np.array([41, 44, 47]))
    assert ordinals_of(chunk).tolist() == [41, 44, 47]
