"""Concepts: the furthest tokens along each direction, whatever the cuts."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, merged
from isoscope.accumulate.concepts import KEPT, Concepts
from isoscope.errors import MergeError


def rows_of(seed, n=200, types=30):
    rng = np.random.default_rng(seed)
    keys = np.arange(n, dtype=np.uint64) + np.uint64(1000 * seed)
    return rng.normal(size=(n, 5)), keys, rng.integers(types, size=n)


def fed(*seeds):
    concepts = Concepts(5, np.eye(5, 2), np.full(5, 0.5), np.array([0.6, 0.2]))
    for seed in seeds:
        rows, keys, tokens = rows_of(seed)
        concepts.update(ArrayBlock(rows, keys, keys, tokens=tokens))
    return concepts


def test_each_token_is_there_once_and_the_furthest_first():
    rows, _, tokens = rows_of(0)
    for direction, concept in enumerate(fed(0).finalize()):
        assert concept.variance == (0.6, 0.2)[direction]
        for sign, end in zip((1, -1), concept.ends, strict=True):
            along = sign * (rows[:, direction] - 0.5)
            best = {kind: along[tokens == kind].max() for kind in np.unique(tokens)}
            expected = sorted(best.items(), key=lambda item: -item[1])[:KEPT]
            assert [each.token for each in end] == [kind for kind, _ in expected]
            reach = [sign * each.reach for each in end]
            assert reach == pytest.approx([value for _, value in expected])


def test_parts_merge_into_what_one_would_have_seen():
    whole, parts = fed(0, 1, 2), merged([fed(2), fed(0), fed(1)])
    for name, array in whole.state().items():
        assert np.array_equal(parts.state()[name], array), name
    again = Concepts.from_state(whole.state(), width=5)
    assert again.finalize() == whole.finalize()


def test_other_directions_do_not_merge():
    with pytest.raises(MergeError):
        fed(0).merge(Concepts(5, np.eye(5, 2)[:, ::-1]))


def test_few_tokens_leave_places_empty():
    concepts = Concepts(5)
    concepts.update(ArrayBlock(np.ones((4, 5)), tokens=np.array([1, 1, 2, 2])))
    (concept,) = concepts.finalize()
    assert [len(end) for end in concept.ends] == [2, 2]
