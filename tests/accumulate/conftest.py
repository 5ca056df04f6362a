"""Blocks to feed accumulators with, and the rows and names they are made of."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock
from isoscope.hashing import named_documents


def blocked(rows, lengths=None, *, first=0, **how):
    """A block whose documents have these lengths and are called by number from `first`."""
    if lengths is None:
        return ArrayBlock(rows, start=first, **how)
    assert sum(lengths) == len(rows)
    names = np.repeat(np.arange(first, first + len(lengths)), lengths)
    positions = np.concatenate([np.arange(n) for n in lengths]).astype(np.uint64)
    return ArrayBlock(rows, named_documents(names), positions, **how)


def cut(rows, lengths, sizes):
    """Blocks of so many documents each, of the same rows as `blocked` would have."""
    blocks, row, document = [], 0, 0
    for size in sizes:
        here = lengths[document : document + size]
        blocks.append(blocked(rows[row : row + sum(here)], here, first=document))
        row, document = row + sum(here), document + size
    assert row == len(rows)
    return blocks


@pytest.fixture(scope="session")
def make_block():
    return blocked


@pytest.fixture(scope="session")
def make_blocks():
    return cut


@pytest.fixture(scope="session")
def feed():
    """An accumulator that has seen blocks."""

    def fed(accumulator, *blocks):
        for block in blocks:
            accumulator.update(block)
        return accumulator

    return fed
