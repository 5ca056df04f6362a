"""The place of a row in its file, counted from 0, dropped rows included."""

import numpy as np

from isoscope.types import Array, Chunk


def ordinals(chunk: Chunk) -> Array:
    """The place of each row of a chunk."""
    if chunk.ordinals is not None:
        return chunk.ordinals
    return np.arange(chunk.start, chunk.start + len(chunk))


def ordinal(chunk: Chunk, index: int) -> int:
    """The place of one row of a chunk."""
    return chunk.start + index if chunk.ordinals is None else int(chunk.ordinals[index])
