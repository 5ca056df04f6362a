"""Readings in parquet."""

import subprocess
import sys
from dataclasses import fields
from math import copysign

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoscope.store.readings import read_readings, reading_schema, write_readings
from isoscope.types import Reading


def test_the_columns_are_the_fields_of_a_reading():
    assert reading_schema().names == [field.name for field in fields(Reading)]
    assert reading_schema().metadata[b"isoscope.schema"] == b"1"


def test_readings_come_back_as_they_were(tmp_path, readings):
    write_readings(tmp_path / "r", readings())
    assert read_readings(tmp_path / "r") == list(readings())


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, -0.0, 1 / 3, -1e-310])
def test_the_last_bit_and_odd_characters_come_back(tmp_path, value):
    words = 'a "quoted"\\ \u2028 line\nwith\x00 2020-01-01'
    odd = Reading(
        words, "2020-01-01", "1", "", 7, "m", value, None, value, 2**53, 3, (words, "")
    )
    write_readings(tmp_path / "r", [odd])
    found = read_readings(tmp_path / "r")
    assert found == [odd]
    assert copysign(1, found[0].value) == copysign(1, value)


def test_pandas_is_not_imported_to_write_readings(tmp_path):
    code = (
        "import sys; from pathlib import Path; from isoscope.types import Reading; "
        "from isoscope.store.readings import write_readings; "
        "one = Reading('r', 's', 'all', '', None, 'm', 0.5, None, None, 6, 3); "
        "write_readings(Path(sys.argv[1]), [one]); print('pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "r")]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"


def test_no_readings_come_back_as_none(tmp_path):
    write_readings(tmp_path / "r", [])
    assert read_readings(tmp_path / "r") == []


def test_odd_names_do_not_lose_the_run(tmp_path):
    odd = Reading("caf\udce9", "rows", "all", "", None, "isoscore", 0.5, None, None, 6, 3)
    write_readings(tmp_path / "r", [odd])
    assert read_readings(tmp_path / "r")[0].run == r"caf\udce9"


def test_what_is_not_a_number_is_not_written(tmp_path, readings):
    with pytest.raises(ValueError, match="expected a finite number, got nan"):
        write_readings(tmp_path / "r", readings(float("nan")))


def rewritten(path, change):
    table = pq.read_table(path)
    pq.write_table(change(table), path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t.drop_columns(["d"]), "expected the columns"),
        (lambda t: t.set_column(9, "n", pa.array(["1", "2"])), "expected the columns"),
        (
            lambda t: t.set_column(
                6,
                pa.field("value", pa.float64(), nullable=False),
                pa.array([float("inf"), 1.0]),
            ),
            "expected a finite number, got inf",
        ),
    ],
)
def test_other_columns_and_impossible_numbers_are_refused(tmp_path, readings, change, problem):
    write_readings(tmp_path / "r", readings())
    rewritten(tmp_path / "r", change)
    with pytest.raises(ValueError, match=problem):
        read_readings(tmp_path / "r")


def test_what_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "r").write_bytes(b"PAR1 and then nothing PAR1")
    with pytest.raises(ValueError, match=r"."):
        read_readings(tmp_path / "r")
