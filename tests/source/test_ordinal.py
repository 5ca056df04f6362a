"""Rows know their place in the file, whether or not some were dropped."""

import numpy as np

from isoscope.source.ordinal import ordinal, ordinals
from isoscope.types import Chunk

ROWS = np.zeros((3, 2), dtype=np.float32)


def test_rows_of_a_whole_chunk_are_counted_from_its_start():
    chunk = Chunk(ROWS, "a", 40)
    assert ordinals(chunk).tolist() == [40, 41, 42]
    assert ordinal(chunk, 2) == 42


def test_rows_that_were_kept_keep_their_places():
    chunk = Chunk(ROWS, "a", 40, ordinals=np.array([41, 44, 47]))
    assert ordinals(chunk).tolist() == [41, 44, 47]
    assert ordinal(chunk, 1) == 44
