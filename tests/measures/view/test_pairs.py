"""The kernel over pairs, by the groups of the two, against every pair."""

import numpy as np
import pytest

from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents
from isoscope.measures.uniformity import uniformity
from isoscope.measures.view import Pairs


def brute(rows):
    """Return the kernel summed over ordered pairs of different rows."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    total = 0.0
    for i, u in enumerate(units):
        for j, v in enumerate(units):
            if i != j:
                total += np.exp(-2 * ((u - v) ** 2).sum())
    return total


@pytest.mark.parametrize("documents", [12, 40])  # a group each, and 32 groups
def test_without_a_group_it_is_the_sum_over_the_others(viewed, documents):
    names = np.repeat(np.arange(documents), 3).astype(str)
    rows = np.random.default_rng(1).normal(size=(len(names), 4)) + 0.5
    seen = viewed(Pairs, rows, names)
    assert seen.kernel.sum() == pytest.approx(brute(rows))
    keys = named_documents(names)
    cells = np.unique(keys if documents <= 32 else keys % 32, return_inverse=True)[1]
    for group in range(0, seen.groups, 5):
        left = seen.without(group)
        assert left.count == np.count_nonzero(cells != group)
        assert left.kernel.sum() == pytest.approx(brute(rows[cells != group]))


def test_more_rows_than_a_chunk_are_paired_with_all(viewed):
    rows = np.random.default_rng(2).normal(size=(600, 3))
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    kernel = np.exp(-4 * (1 - units @ units.T))
    seen = viewed(Pairs, rows)
    assert seen.kernel.sum() == pytest.approx(kernel.sum() - 600)
    assert seen.groups == 32


def test_zero_rows_are_not_paired(viewed):
    rows = np.random.default_rng(3).normal(size=(20, 3))
    rows[4] = 0.0
    seen = viewed(Pairs, rows)
    assert (seen.count, seen.documents) == (19, 20)
    assert seen.kernel.sum() == pytest.approx(brute(rows[rows.any(axis=1)]))


def test_tiny_rows_have_a_direction_all_the_same(viewed):
    rows = np.random.default_rng(4).normal(size=(20, 3)) + 1
    tiny = (rows * 1e-30).astype(np.float32)
    assert viewed(Pairs, tiny).kernel.sum() == pytest.approx(brute(rows), rel=1e-5)


def test_one_usable_row_has_no_uniformity(viewed):
    rows = np.zeros((20, 3))
    rows[4] = 1.0
    with pytest.raises(TooFewRowsError, match="at least 2 usable rows, got 1"):
        uniformity(viewed(Pairs, rows))
