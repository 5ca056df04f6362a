"""Shapes, types and sizes of chunks."""

import numpy as np
import pytest

from isoscope.source.row_source import bytes_per_number, plain_rows, rows_per_chunk


@pytest.mark.parametrize(
    ("width", "dtype", "rows"),
    [
        (768, "float32", 7812),
        (768, "float64", 3906),
        (768, "int8", 7812),
        (768, "bfloat16", 7812),
        (50_000, "float32", 256),
        (1_000_000, "float32", 24),
        (1 << 20, "float64", 11),
    ],
)
def test_a_chunk_is_about_24_megabytes(width, dtype, rows):
    assert rows_per_chunk(width, dtype) == rows


@pytest.mark.parametrize(
    ("dtype", "size"), [("float16", 4), ("int64", 8), ("bool", 4), ("bfloat16", 4)]
)
def test_numbers_take_four_bytes_or_eight(dtype, size):
    assert bytes_per_number(dtype) == size


def test_swapped_doubles_stay_doubles():
    rows = np.array([[1 + 2**-40]], dtype=">f8")
    assert plain_rows(rows).dtype == np.float64 and plain_rows(rows)[0, 0] == rows[0, 0]


def test_what_is_plain_already_is_not_copied():
    rows = np.ones((3, 2), dtype=np.float32)
    assert np.shares_memory(plain_rows(rows), rows)
    assert plain_rows(np.asfortranarray(np.ones((3, 2)))).flags.c_contiguous
