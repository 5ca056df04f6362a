"""What is summed of a block: over its cells, over its documents; and what sinks say."""

from collections.abc import Callable
from dataclasses import dataclass

from isoscope.types import Array


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the rows of each cell, z being a row minus the origin, u its unit vector."""

    count: Array  # (cells,)
    nonzero: Array  # (cells,) rows that have a direction
    total: Array  # (cells, d) of z
    trace: Array  # (cells,) of |z|^2
    cubic: Array  # (cells, d) of |z|^2 z
    quartic: Array  # (cells,) of |z|^4
    units: Array  # (cells, d) of u
    energy: Array  # (d,) of u^2, dimension by dimension, over all cells
    sketch: Array  # (cells, rank, d) of (z . directions) z; rank 0 for independent rows


@dataclass(frozen=True)
class DocumentSums:
    """One class of rows: for each of its documents the sums of rows, and sizes."""

    keys: Array  # (documents,)
    units: Array  # (documents, d) of unit vectors
    total: Array  # (documents, d) of the rows themselves
    nonzero: Array  # (documents,)
    rows: Array  # (documents,)


@dataclass(frozen=True)
class SinkRows:
    """What a block of sinks knows of its rows besides their numbers."""

    times: Array  # (n,) norm over the median norm of the document
    quote: Callable[[int], tuple[str, str]]  # the token of a row and its context
