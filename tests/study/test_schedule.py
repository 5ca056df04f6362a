"""Schedules: every document once, batches within their bounds, the same every time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.study.selection import (
    MOST_UNIT_ROWS,
    SMALL_UNIT_ROWS,
    UNIT_ROWS,
    Item,
    schedule,
)

lengths = st.lists(st.integers(2, 300), max_size=60)


def items(sizes):
    return [Item(number, size, size) for number, size in enumerate(sizes)]


@given(sizes=lengths, documents=st.integers(1, 9), positions=st.integers(1, 2000))
def test_every_document_is_run_once_and_batches_keep_their_bounds(sizes, documents, positions):
    units = schedule(items(sizes), unit_rows=500, documents=documents, positions=positions)
    flat = [ordinal for unit in units for batch in unit for ordinal in batch]
    assert sorted(flat) == list(range(len(sizes)))
    for unit in units:
        rows = sum(sizes[ordinal] for batch in unit for ordinal in batch)
        assert rows <= 500 or sum(map(len, unit)) == 1
        for batch in unit:
            assert len(batch) <= documents
            padded = len(batch) * max(sizes[ordinal] for ordinal in batch)
            assert padded <= positions or len(batch) == 1


@given(sizes=lengths)
def test_units_have_consecutive_documents(sizes):
    units = schedule(items(sizes), unit_rows=400)
    starts = [min(ordinal for batch in unit for ordinal in batch) for unit in units]
    assert starts == sorted(starts)


@given(sizes=lengths)
def test_lengths_that_may_not_be_mixed_are_not(sizes):
    for unit in schedule(items(sizes), mixed=False):
        for batch in unit:
            assert len({sizes[ordinal] for ordinal in batch}) == 1


def test_nothing_is_no_units():
    assert schedule([]) == []


@pytest.mark.parametrize(
    ("rows", "units"), [(60_000, 2), (200_000, 4), (524_000, 4), (1_000_000, 8), (30_000, 1)]
)
def test_a_unit_has_a_quarter_of_the_rows_within_bounds(rows, units):
    found = schedule(items([100] * (rows // 100)))
    assert len(found) == units
    sizes = [100 * sum(map(len, unit)) for unit in found]
    assert max(sizes) <= MOST_UNIT_ROWS
    assert max(sizes) - min(sizes) <= 200  # none is a rest


@pytest.mark.parametrize(
    ("weights", "units"), [(10**10, 8), (10**8, 8), (2 * 10**7, 7), (10**7, 4), (1, 4)]
)
def test_units_of_small_models_have_the_rows_of_a_minute(weights, units):
    sizes = [100 * sum(map(len, u)) for u in schedule(items([100] * 10_000), weights=weights)]
    assert len(sizes) == units
    assert UNIT_ROWS <= max(sizes) <= SMALL_UNIT_ROWS


@given(sizes=lengths)
def test_even_units_have_every_document_once_in_order(sizes):
    sizes = [1000 * size for size in sizes]
    units = schedule(items(sizes), documents=1)
    flat = [sorted(ordinal for batch in unit for ordinal in batch) for unit in units]
    assert [ordinal for unit in flat for ordinal in unit] == list(range(len(sizes)))
    assert all(flat)
