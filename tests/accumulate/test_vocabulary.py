"""Types are kept by hash: exact sums for those that stay, and no more memory than that."""

import tracemalloc

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Vocabulary, merged
from isoscope.errors import MergeError
from isoscope.hashing import hash_tuples, named_documents, type_hashes


def stream(n, vocabulary, d=4, *, each=10, seed=0, first=0):
    """Return a block of documents of so many tokens."""
    rng = np.random.default_rng(seed)
    names = first + np.arange(n) // each
    positions = (np.arange(n) % each).astype(np.uint64)
    tokens = rng.integers(0, vocabulary, size=n)
    return ArrayBlock(rng.normal(size=(n, d)), named_documents(names), positions, tokens=tokens)


def fed(*blocks, **sizes):
    vocabulary = Vocabulary(blocks[0].width, **sizes)
    for block in blocks:
        vocabulary.update(block)
    return vocabulary


def test_the_sums_of_a_type_are_those_of_all_its_occurrences(make_block):
    block = stream(500, 30)
    found = fed(block).finalize()
    units = block.rows / np.linalg.norm(block.rows, axis=1, keepdims=True)
    assert found.complete and found.vocabulary == len(found.tokens) == 30
    for place, token in enumerate(found.tokens):
        here = block.tokens == token
        assert found.nonzero[place] == here.sum()
        np.testing.assert_allclose(found.units[place], units[here].sum(axis=0), atol=1e-12)


def test_of_a_large_vocabulary_the_types_of_smallest_hash_are_whole():
    blocks = [stream(400, 300, seed=i, first=40 * i) for i in range(6)]
    found = fed(*blocks, types=20, sampled=5, kept=3).finalize()
    tokens = np.concatenate([block.tokens for block in blocks])
    units = np.concatenate([b.rows / np.linalg.norm(b.rows, axis=1)[:, None] for b in blocks])
    every = np.unique(tokens)
    first = every[np.argsort(type_hashes(every))][:20]
    np.testing.assert_array_equal(found.tokens, first)
    for place, token in enumerate(first):
        expected = units[tokens == token].sum(axis=0)
        np.testing.assert_allclose(found.units[place], expected, atol=1e-12)
    assert not found.complete
    assert found.vocabulary == pytest.approx(len(every), rel=0.6)  # told from twenty hashes


def test_kept_occurrences_are_those_of_smallest_hash():
    block = stream(600, 12)
    found = fed(block, types=8, sampled=4, kept=5).finalize()
    draws = hash_tuples(block.documents, block.positions)
    for place, token in enumerate(found.tokens[:4]):
        here = np.flatnonzero(block.tokens == token)
        first = here[np.argsort(draws[here])][:5]
        np.testing.assert_array_equal(found.rows[found.owners == place], block.rows[first])
    assert found.owners.max() == 3


def test_a_zero_row_has_no_direction():
    block = ArrayBlock(np.array([[0.0, 0.0], [3.0, 4.0]]), tokens=np.array([7, 7]))
    found = fed(block).finalize()
    assert found.nonzero.tolist() == [1.0]
    np.testing.assert_allclose(found.units, [[0.6, 0.8]])


def test_a_million_types_stay_under_the_bound():
    d, types, sampled, kept = 32, 1024, 256, 16
    bound = types * (8 * d + 24) + sampled * kept * (4 * d + 16) + 1000
    vocabulary = Vocabulary(d)
    rng = np.random.default_rng(1)
    order = rng.permutation(1_000_000)
    size = 20_000
    rows = rng.normal(size=(size, d)).astype(np.float32)
    tracemalloc.start()
    for number, first in enumerate(range(0, len(order), size)):
        names = number * size + np.arange(size)
        vocabulary.update(
            ArrayBlock(
                rows,
                named_documents(np.array([f"d{number}"])).repeat(size),
                names.astype(np.uint64),
                tokens=order[first : first + size],
            )
        )
    held = sum(array.nbytes for array in vocabulary.state().values())
    now = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held <= bound
    assert now <= 2 * bound + size * 64  # and what belongs to the last block
    found = vocabulary.finalize()
    assert len(found.tokens) == types
    assert found.vocabulary == pytest.approx(1_000_000, rel=0.1)  # 1 / sqrt(1024) thrice


def test_blocks_without_tokens_are_counted_and_nothing_else():
    vocabulary = fed(ArrayBlock(np.ones((3, 2))))
    assert vocabulary.count == 3
    assert not len(vocabulary.hashes)


def test_vocabularies_of_different_size_do_not_merge():
    with pytest.raises(MergeError, match="cannot merge"):
        Vocabulary(3, types=4).merge(Vocabulary(3, types=5))


def test_merging_in_any_order_gives_the_very_same_types():
    parts = [fed(stream(300, 200, seed=i, first=30 * i), types=16) for i in range(4)]
    left = merged([merged(parts[:2]), merged(parts[2:])]).finalize()
    right = merged([parts[3], parts[1], parts[0], parts[2]]).finalize()
    np.testing.assert_array_equal(left.tokens, right.tokens)
    np.testing.assert_array_equal(left.rows, right.rows)
    np.testing.assert_allclose(left.units, right.units, atol=1e-12)
