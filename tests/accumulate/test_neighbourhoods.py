"""Neighbourhoods of token types against a table of all occurrences."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Neighbourhoods, merged
from isoscope.errors import MergeError
from isoscope.hashing import hash_tuples, named_documents

TYPES = (1, 4, 5)


def stream(rng, documents=40, length=30, tokens=8):
    """Return blocks of two documents each, and all rows with their documents and tokens."""
    blocks, table = [], []
    for start in range(0, documents, 2):
        names = np.repeat([f"d{start}", f"d{start + 1}"], length)
        keys = named_documents(names)
        positions = np.tile(np.arange(length), 2).astype(np.uint64)
        rows = rng.standard_normal((2 * length, 3)).astype(np.float32)
        ids = rng.integers(0, tokens, 2 * length)
        blocks.append(ArrayBlock(rows, keys, positions, tokens=ids))
        table += list(zip(ids, keys, hash_tuples(keys, positions), rows, strict=True))
    return blocks, table


def by_hand(table, token, kept):
    """Return the rows of a type: of each document the smallest hash, of these the smallest."""
    best = {}
    for each, document, draw, row in table:
        if each == token and (document not in best or draw < best[document][0]):
            best[document] = (draw, row)
    return [row for _, row in sorted(best.values(), key=lambda pair: pair[0])[:kept]]


def test_kept_rows_are_those_of_the_definition_whatever_the_cuts():
    blocks, table = stream(np.random.default_rng(0))
    whole = Neighbourhoods(3, TYPES, kept=6)
    parts = [Neighbourhoods(3, TYPES, kept=6) for _ in range(4)]
    for number, block in enumerate(blocks):
        whole.update(block)
        parts[number % 4].update(block)
    for seen in (whole.finalize(), merged(parts).finalize()):
        tokens, documents, rows = seen.complete()
        assert tokens.tolist() == list(TYPES) and rows.shape == (3, 6, 3)
        assert all(len(set(each.tolist())) == 6 for each in documents)
        for token, found in zip(tokens, rows, strict=True):
            assert np.array_equal(found, by_hand(table, token, 6))


def test_types_of_too_few_documents_are_not_complete():
    blocks, _ = stream(np.random.default_rng(1), documents=4)
    seen = Neighbourhoods(3, (*TYPES, 99), kept=4)
    for block in blocks:
        seen.update(block)
    assert 99 not in seen.finalize().complete()[0]
    assert len(Neighbourhoods(3, TYPES).finalize().complete()[0]) == 0


def test_rows_without_tokens_are_passed_over():
    seen = Neighbourhoods(3, TYPES)
    seen.update(ArrayBlock(np.ones((4, 3))))
    assert len(seen.finalize().rows) == 0


def test_other_types_do_not_merge():
    with pytest.raises(MergeError):
        Neighbourhoods(3, TYPES).merge(Neighbourhoods(3, (1, 2)))
