"""Readings as a parquet file, one row each."""

# pyarrow has no types: what it returns is checked by `msgspec.convert` where it leaves here.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from isoscope.store.schema import SCHEMA, plain_values
from isoscope.types import Reading

if TYPE_CHECKING:  # imported where needed: `isoscope measure` without -o does without it
    import pyarrow

EDITION = b"isoscope.schema"
MOST_ROWS, WIDEST = 2**53, 2**22  # that a reading can be of


def reading_schema() -> "pyarrow.Schema":
    """Return the columns of a reading, as schema 1 fixes them."""
    import pyarrow as pa

    words = ("run", "site", "variant", "group")
    columns = [
        *(pa.field(name, pa.string(), nullable=False) for name in words),
        pa.field("step", pa.int64()),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("d", pa.int64(), nullable=False),
        pa.field("warnings", pa.list_(pa.string()), nullable=False),
    ]
    return pa.schema(columns, metadata={EDITION: str(SCHEMA).encode()})


def write_readings(path: Path, readings: Iterable[Reading]) -> None:
    """Write readings; a value that is not a number is a bug and is refused."""
    import pyarrow.parquet as pq

    found = list(readings)
    _check_finite(found)
    table = _as_table([plain_values(each) for each in found])
    with path.open("xb") as file:  # not by name: Python's file reports a full disk as such
        pq.write_table(table, file, compression="zstd")


def _as_table(rows: Sequence[object]) -> "pyarrow.Table":
    """Return rows as a table, by way of JSON.

    Arrow imports pandas, where there is one, as soon as it is given a list: a quarter of a
    second, and forty megabytes.
    """
    import pyarrow as pa
    import pyarrow.json as pj

    schema = reading_schema()
    if not rows:
        return schema.empty_table()
    lines = msgspec.json.Encoder().encode_lines(rows)
    table = pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=max(len(lines), 1)),
        parse_options=pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="error"
        ),
    )
    return table.cast(schema)


def read_readings(path: Path) -> list[Reading]:
    """Read readings back; raises ValueError where the file is not what we write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error
    if not table.schema.equals(reading_schema()):
        raise ValueError(f"expected the columns of a reading, got {table.schema.names}")
    found = msgspec.convert(table.to_pylist(), list[Reading])
    _check_finite(found)
    for each in found:
        if not (0 <= each.n <= MOST_ROWS and 0 <= each.d <= WIDEST):
            raise ValueError(f"expected numbers of rows and dimensions, got {each.n}, {each.d}")
    return found


def _check_finite(readings: Iterable[Reading]) -> None:
    for each in readings:
        for number in (each.value, each.low, each.high):
            if number is not None and not isfinite(number):
                raise ValueError(f"expected a finite number, got {number}")
