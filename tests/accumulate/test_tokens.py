"""Rows know their type, and types their place in the order of hashes."""

import numpy as np

from isoscope.accumulate.membership import Membership
from isoscope.hashing import type_hashes


def test_every_row_finds_its_token_again():
    tokens = np.array([9, 2, 9, 40, 2, 2])
    documents = np.arange(6, dtype=np.uint64)
    found = Membership(documents, documents, tokens=tokens).types
    assert found.tokens.tolist() == [2, 9, 40]
    np.testing.assert_array_equal(found.tokens[found.where], tokens)
    np.testing.assert_array_equal(found.hashes, type_hashes(found.tokens))
