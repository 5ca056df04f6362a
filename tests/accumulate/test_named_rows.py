"""Named rows: which are kept, whatever the order, and what they are called."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, NamedRows, RowNames, merged
from isoscope.accumulate.copies import SIZE
from isoscope.accumulate.named_rows import ID_BYTES, KEPT, LONG
from isoscope.hashing import ordinal_documents

WIDTH = 4


def block(rows, start=0):
    ordinals = np.arange(start, start + len(rows), dtype=np.uint64)
    names = RowNames(
        [f"id-{i}" for i in ordinals], [f"text of {i}" for i in ordinals], ordinals
    )
    keys = ordinal_documents("rows", ordinals)
    return ArrayBlock(rows, keys, independent=True, names=names)


def feed(rows, size=None, start=0):
    named = NamedRows(WIDTH)
    for first in range(0, len(rows), size or len(rows)):
        part = rows[first : first + (size or len(rows))]
        named.update(block(part, start + first))
    return named


@pytest.fixture
def rows():
    rows = np.random.default_rng(1).normal(size=(600, WIDTH))
    rows[[50, 400]] = rows[3]
    rows[90] = rows[70]
    rows[[20, 500]] = 0.0
    rows[333] *= 1000
    return rows


def test_copies_zero_and_long_rows_are_named(rows):
    found = feed(rows).finalize()
    equal = [[row.id for row in each] for each in found.copies]
    assert equal == [["id-3", "id-50"], ["id-20", "id-500"], ["id-70", "id-90"]]
    assert [row.text for row in found.zeros] == ["text of 20", "text of 500"]
    assert found.long[0].id == "id-333" and len(found.long) == KEPT[LONG]
    norms = np.sort(np.linalg.norm(rows, axis=1))[::-1]
    np.testing.assert_allclose([row.norm for row in found.long], norms[: KEPT[LONG]])
    assert found.skipped == ()


@pytest.mark.parametrize("size", [1, 7, 100])
def test_neither_cuts_nor_the_order_of_parts_matter(rows, size):
    whole = feed(rows).state()
    parts = [feed(rows[:250], size), feed(rows[250:], size, 250)]
    for order in (parts, parts[::-1]):
        found = merged(order).state()
        for name, array in whole.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_memory_does_not_grow_with_the_rows():
    rows = np.random.default_rng(2).normal(size=(5000, WIDTH))
    named = feed(rows, 500)
    assert (named.kinds == 0).sum() == SIZE
    assert len(named.kinds) <= 2 * SIZE + KEPT[1:].sum()


def test_skipped_rows_are_the_first_of_their_source():
    named = NamedRows(WIDTH)
    ordinals = np.arange(40, 20, -1, dtype=np.uint64)
    names = RowNames([f"id-{i}" for i in ordinals], None, ordinals)
    named.skip(ordinal_documents("rows", ordinals), names)
    expected = [f"id-{i}" for i in range(21, 29)]
    assert [row.id for row in named.finalize().skipped] == expected
    total = merged([NamedRows(WIDTH), named])
    assert [row.id for row in total.finalize().skipped] == expected


def test_a_long_id_is_cut_between_characters():
    rows = np.zeros((1, WIDTH))
    names = RowNames(["ü" * 100], None, np.zeros(1, dtype=np.uint64))
    named = NamedRows(WIDTH)
    named.update(ArrayBlock(rows, names=names))
    assert named.finalize().zeros[0].id == "ü" * (ID_BYTES // 2)


def test_rows_without_names_leave_nothing(rows):
    named = NamedRows(WIDTH)
    named.update(ArrayBlock(rows))
    assert not len(named.kinds)
