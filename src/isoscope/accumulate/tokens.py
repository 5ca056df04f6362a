"""Token types: which there are among rows, and the order in which they are kept."""

from dataclasses import dataclass

import numpy as np

from isoscope.accumulate.hashing import type_hashes
from isoscope.types import Array


@dataclass(frozen=True, slots=True)
class Types:
    """The token types of some rows, and which one each row is of."""

    tokens: Array  # (types,) ids, ascending
    hashes: Array  # (types,) uint64: types of small ones are kept before others
    where: Array  # (n,) type of each row

    @classmethod
    def of(cls, tokens: Array) -> "Types":
        """Return the types of these tokens."""
        ids, where = np.unique(tokens, return_inverse=True)
        return cls(ids, type_hashes(ids), where)
