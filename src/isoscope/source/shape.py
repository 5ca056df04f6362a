"""Checks of shape, width and type of vectors, and the number of rows per chunk."""

from collections import defaultdict

import numpy as np

from isoscope.errors import SourceError
from isoscope.types import Array, as_rows

MAX_WIDTH = 1 << 20  # a row must fit into memory many times over
CHUNK_BYTES = 24e6
DECODED_BYTES = 8e6  # for formats that need room for decoding besides the rows


def rows_per_chunk(width: int, dtype: str, budget: float = CHUNK_BYTES) -> int:
    """Rows of this width that fit into the budget of bytes, as float32 or float64.

    At least 256, for the sake of matrix products, unless that is four times the budget.
    """
    row = max(1, width) * bytes_per_number(dtype)
    return int(max(budget // row, min(256, 4 * budget // row), 1))


def bytes_per_number(dtype: str) -> int:
    """Bytes per number as float32 or float64."""
    if dtype == "bfloat16":
        return 4
    return as_rows(np.empty(0, dtype=dtype)).dtype.itemsize


def plain_rows(block: Array) -> Array:
    """Rows in C order and native bytes, float32 or float64; a view where that is possible."""
    native = block.dtype.newbyteorder("=")
    # as_rows compares with native types only: swapped float64 would come out as float32.
    with np.errstate(over="ignore"):  # long doubles beyond double become infinite
        return as_rows(np.require(block, dtype=native, requirements=["C", "A"]))


def check_matrix(shape: tuple[int, ...], place: str) -> tuple[int, int]:
    """Return (n, d) of an array of vectors, or refuse what is not one."""
    if len(shape) != 2:
        raise SourceError(
            f"expected a two-dimensional array (rows, width) in {place}, "
            f"got {len(shape)} dimension{'' if len(shape) == 1 else 's'} {shape}",
            hint="one row is one vector: reshape to (rows, width)"
            if len(shape) < 2
            else "flatten all but the last axis: rows.reshape(-1, rows.shape[-1])",
            slug="not-two-dimensional",
        )
    n, d = shape
    if n == 0:
        raise no_rows(place)
    check_width(d, place)
    return n, d


def check_width(d: int, place: str) -> int:
    """Return the width of vectors, or refuse one that cannot be right."""
    if d == 0:
        raise SourceError(
            f"expected vectors of width 1 or more in {place}, got width 0",
            hint="check the step that writes the vectors",
            slug="width-zero",
        )
    if d > MAX_WIDTH:
        raise SourceError(
            f"expected vectors of width {MAX_WIDTH} at most in {place}, got width {d}",
            hint="one row is one vector: transpose the array if it lies the other way round",
            slug="width-too-large",
        )
    return d


def no_rows(place: str) -> SourceError:
    """Return the error for a source without rows."""
    return SourceError(
        f"expected vectors in {place}, got 0 rows",
        hint="check the step that writes it, and any filter before that",
        slug="no-rows",
    )


def check_numeric(dtype: np.dtype[np.generic], place: str) -> None:
    """Refuse an array that does not hold real numbers."""
    if dtype.kind not in "fiub":
        got, hint, slug = _NOT_REAL["" if dtype.names else dtype.kind]
        problem = f"expected real numbers in {place}, got {got.format(dtype)}"
        raise SourceError(problem, hint=hint, slug=slug)


_STRINGS = ("strings ({})", "save the vectors as numbers, not as text", "strings")
_NOT_REAL = defaultdict(  # what was found, hint and slug, by the kind of a type
    lambda: (
        "the type {}",
        "save a plain two-dimensional array of floats or integers",
        "dtype-unsupported",
    ),
    c=(
        "complex numbers ({})",
        "take the real part, or stack real and imaginary parts as columns",
        "complex-numbers",
    ),
    O=(
        "pickled or Python objects",
        "save an array of numbers: np.save(path, np.stack(rows).astype('float32'))",
        "objects",
    ),
    S=_STRINGS,
    U=_STRINGS,
    V=(
        "raw bytes ({})",
        "convert to float32 and save again; safetensors has bfloat16, npy has not",
        "dtype-unsupported",
    ),
)
