"""How alike the rows of documents are, from their sums."""

import numpy as np
import pytest

from isoscope.accumulate import Sentences
from isoscope.accumulate.sentences import likeness
from isoscope.errors import TooFewRowsError


def slow(part):
    mean = part.mean(axis=0)
    return (part @ mean / np.linalg.norm(part, axis=1) / np.linalg.norm(mean)).mean()


@pytest.mark.parametrize("documents", [5, 50])
def test_each_group_has_the_sum_over_its_documents(make_block, feed, documents):
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 6, size=documents).tolist()
    rows = rng.normal(size=(sum(lengths), 4)) + 2.0
    found = feed(Sentences(4), make_block(rows, lengths)).finalize()
    parts = np.split(rows, np.cumsum(lengths)[:-1])
    assert found.likeness.sum() == pytest.approx(sum(map(slow, parts)), abs=1e-12)
    assert found.sizes.sum() == found.documents == documents
    assert found.groups == min(documents, found.groups) <= 32


def test_a_row_alone_and_rows_that_cancel_do_not_count():
    total = np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    units = np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    value, counted = likeness(total, units, np.array([1.0, 2.0, 2.0]))
    assert value.tolist() == [0.0, 0.0, 1.0]
    assert counted.tolist() == [0.0, 0.0, 1.0]


def test_independent_rows_have_no_documents(make_block, feed):
    with pytest.raises(TooFewRowsError, match="at least 2 rows, got none"):
        feed(Sentences(3), make_block(np.ones((4, 3)))).finalize()


def test_leaving_a_group_out_leaves_its_documents_out(make_block, feed):
    rows = np.random.default_rng(1).normal(size=(30, 3))
    found = feed(Sentences(3), make_block(rows, [3] * 10)).finalize()
    left = found.without(0)
    assert left.groups == found.groups - 1
    assert left.likeness.sum() == pytest.approx(found.likeness.sum() - found.likeness[0])
