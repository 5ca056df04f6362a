"""Partition sums as a view: its counts, its norms, and groups left out."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Norms, Partitions
from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents
from isoscope.measures.view import PartitionSums


def planted():
    names = np.repeat(np.arange(10), 3).astype(str)
    return np.random.default_rng(1).normal(size=(30, 4)) + 0.5, names


@pytest.fixture
def seen(summaries):
    rows, names = planted()
    every = summaries(rows, names)
    sums = Partitions(4, np.eye(4))
    positions = np.tile(np.arange(3, dtype=np.uint64), 10)
    sums.update(ArrayBlock(rows, named_documents(names), positions))
    every[Partitions] = sums.finalize()
    return every.view(PartitionSums)


def test_it_knows_what_it_rests_on(seen, summaries):
    assert (seen.width, seen.count, seen.documents, seen.groups) == (4, 30, 10, 10)
    np.testing.assert_array_equal(seen.sizes, 3)
    assert len(seen.lengths) == summaries(*planted())[Norms].count


def test_groups_add_up_to_the_partition_function_of_all(seen):
    rows, _ = planted()
    np.testing.assert_allclose(
        np.logaddexp.reduce(seen.plus, axis=0), np.log(np.exp(rows).sum(axis=0))
    )
    np.testing.assert_allclose(
        np.logaddexp.reduce(seen.minus, axis=0), np.log(np.exp(-rows).sum(axis=0))
    )


def test_without_a_group_the_others_are_left(seen):
    rows, names = planted()
    keys = named_documents(names)
    for group, key in enumerate(np.unique(keys)):
        left = seen.without(group)
        assert (left.count, left.groups) == (27, 9)
        np.testing.assert_allclose(
            np.logaddexp.reduce(left.plus, axis=0),
            np.log(np.exp(rows[keys != key]).sum(axis=0)),
        )


def test_without_a_second_pass_there_is_no_view(viewed):
    with pytest.raises(TooFewRowsError, match="no partitions were kept"):
        viewed(PartitionSums, *planted())
