"""Rows that cannot be measured: find them, refuse them or leave them out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from isoscope.errors import RowError
from isoscope.types import Array, Chunk


def bad_rows(chunk: Chunk, sums: Array | None = None) -> Array:
    """Indices of the rows that hold NaN or infinity.

    Any sum over a row shows it: `sums` may be squared norms the caller has anyway. A sum
    can overflow although every number is finite, so only the suspects are looked at.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        totals = np.einsum("ij->i", chunk.rows) if sums is None else sums
    suspects = np.flatnonzero(~np.isfinite(totals))
    if not len(suspects):
        return suspects
    return suspects[~np.isfinite(chunk.rows[suspects]).all(axis=1)]


def refuse(chunk: Chunk, index: int) -> NoReturn:
    """Raise the error for a row of the chunk that holds NaN or infinity."""
    got = "NaN" if np.isnan(chunk.rows[index]).any() else "infinity"
    raise RowError(
        f"expected finite numbers in row {ordinal(chunk, index)} of "
        f"{chunk.place or chunk.source} (rows count from 0), got {got}",
        hint="--skip-bad (in Python skip_bad=True) drops and counts such rows",
        slug="row-not-finite",
    )


def without(chunk: Chunk, indices: Array) -> Chunk:
    """Return the chunk without some rows; the others keep their ordinals."""
    if not len(indices):
        return chunk
    keep = np.ones(len(chunk), dtype=bool)
    keep[indices] = False
    kept = np.flatnonzero(keep)
    return replace(
        chunk,
        rows=chunk.rows[kept],
        documents=None if chunk.documents is None else chunk.documents[kept],
        ids=_kept(chunk.ids, kept),
        texts=_kept(chunk.texts, kept),
        ordinals=ordinals(chunk)[kept],
    )


def ordinals(chunk: Chunk) -> Array:
    """The place of each row in its file, counted from 0, dropped rows included."""
    if chunk.ordinals is not None:
        return chunk.ordinals
    return np.arange(chunk.start, chunk.start + len(chunk))


def ordinal(chunk: Chunk, index: int) -> int:
    """The place of one row in its file, counted from 0."""
    return chunk.start + index if chunk.ordinals is None else int(chunk.ordinals[index])


def _kept(values: Sequence[str] | None, kept: Array) -> list[str] | None:
    return None if values is None else [str(values[i]) for i in kept]
