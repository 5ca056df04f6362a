"""Counts of rows, documents and zero rows."""

import numpy as np
import pytest

from isoscope.accumulate import Tally, merged
from isoscope.accumulate.tally import SAMPLE

ROWS = np.arange(24.0).reshape(12, 2) - 6  # row 3 is all zero


def test_rows_documents_and_zero_rows_are_counted(make_block, feed):
    rows = np.where(np.arange(12)[:, None] % 4 == 3, 0, np.arange(24.0).reshape(12, 2) + 1)
    summary = feed(Tally(2), make_block(rows, [3, 4, 5])).finalize()
    assert (summary.count, summary.documents, summary.zeros) == (12, 3, 3)
    assert summary.width == 2 and not summary.independent


def test_rows_on_their_own_are_documents(make_block, feed):
    summary = feed(Tally(2), make_block(ROWS + 100)).finalize()
    assert (summary.count, summary.documents, summary.zeros) == (12, 12, 0)
    assert summary.independent


def test_parts_add_up_and_one_document_makes_all_dependent(make_block, feed):
    parts = [
        feed(Tally(2), make_block(ROWS)),
        feed(Tally(2), make_block(ROWS, [6, 6], first=9)),
    ]
    for order in (parts, parts[::-1]):
        summary = merged(order).finalize()
        assert (summary.count, summary.documents) == (24, 14)
        assert not summary.independent


@pytest.mark.parametrize("scale", [1e-25, 1e-20, 1e15])
def test_a_tiny_row_is_not_a_zero_row(make_block, feed, scale):
    rows = (np.ones((40, 2)) * scale).astype(np.float32)
    assert feed(Tally(2), make_block(rows)).finalize().zeros == 0


def test_skipped_rows_are_noted_and_add_up(make_block, feed):
    parts = [feed(Tally(2), make_block(ROWS)) for _ in range(2)]
    parts[0].skip(3)
    parts[1].skip(4)
    whole = merged(parts)
    assert whole.finalize().skipped == 7 and whole.count == 24
    assert Tally.from_state(whole.state(), width=2).finalize().skipped == 7


def test_an_empty_tally_counts_nothing():
    summary = Tally(5).finalize()
    assert (summary.count, summary.documents, summary.zeros) == (0, 0, 0)


def test_a_saved_tally_continues(make_block, feed):
    tally = feed(Tally(2), make_block(ROWS, [6, 6]))
    back = Tally.from_state(tally.state(), width=2)
    assert back.finalize() == tally.finalize()


# --- the sample of documents ---------------------------------------------------------------


def keys_of(*blocks):
    return sorted({int(key) for block in blocks for key in block.documents})


def test_the_smallest_keys_of_documents_are_kept(make_block, feed):
    rows = np.ones((900, 2))
    block = make_block(rows, [3] * 300)
    assert feed(Tally(2), block).sample.tolist() == keys_of(block)[:SAMPLE]


def test_samples_merge_in_any_order(make_block, feed):
    blocks = [make_block(np.ones((400, 2)), [2] * 200, first=first) for first in (0, 200, 400)]
    every = keys_of(*blocks)[:SAMPLE]
    for order in (blocks, blocks[::-1]):
        assert merged(feed(Tally(2), block) for block in order).sample.tolist() == every
    assert feed(Tally(2), *blocks).sample.tolist() == every


def test_a_tally_of_an_earlier_version_has_no_sample(make_block, feed):
    state = feed(Tally(2), make_block(ROWS, [6, 6])).state()
    del state["sample"]
    old = Tally.from_state(state, width=2)
    assert not len(old.sample) and old.finalize().documents == 2
