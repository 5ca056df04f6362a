"""Typed columns as CSV and as frames."""

import csv
import sys
from io import StringIO

import numpy as np
import polars
import pytest

from isoscope.display.frames import (
    Field,
    as_csv,
    as_pandas,
    as_polars,
    integers,
    numbers,
    texts,
)
from isoscope.errors import ConfigError

FIELDS = (
    *texts("name"),
    *integers("n"),
    Field("step", "integer", optional=True),
    *numbers("low"),
    Field("learnt", "flag", optional=True),
    Field("paired", "flag"),
    Field("words", "texts", joined=True),
    Field("seeds", "integers"),
    Field("values", "numbers"),
    Field("named", "json"),
)
LINES = [
    {
        "name": "a_b", "n": 3, "step": 7, "low": 1, "learnt": True, "paired": False,
        "words": ["few", "odd"], "seeds": [0, 1], "values": [0.5, None], "named": {"x": [1]},
    },
    {
        "name": "c\x1b[2J", "n": 4, "step": None, "low": None, "learnt": None, "paired": True,
        "words": [], "seeds": [], "values": [], "named": None,
    },
]  # fmt: skip


def test_csv_joins_words_writes_other_lists_as_json_and_names_harmlessly():
    head, first, second = csv.reader(StringIO(as_csv(FIELDS, LINES)))
    assert head == [field.name for field in FIELDS]
    assert first == [
        "a_b", "3", "7", "1", "True", "False", "few; odd", "[0, 1]", "[0.5, null]",
        '{"x": [1]}',
    ]  # fmt: skip
    assert second == ["c\\x1b[2J", "4", "", "", "", "True", "", "[]", "[]", ""]


@pytest.mark.parametrize("first", "=+-@")
def test_csv_has_no_cell_that_a_spreadsheet_computes(first):
    line = {"name": f"{first}cmd|' /C calc'!A0", "low": -0.5, "words": [f"{first}1"]}
    (row,) = csv.DictReader(StringIO(as_csv(FIELDS, [line])))
    assert row["name"] == f"'{first}cmd|' /C calc'!A0"
    assert row["words"] == f"'{first}1"
    assert row["low"] == "-0.5"


def test_lines_of_different_kinds_share_one_header():
    fields = integers("a", "b")
    assert as_csv(fields, [{"a": 1}, {"b": 2}]) == "a,b\n1,\n,2\n"
    assert as_csv(fields, []) == "a,b\n"


PANDAS = {
    "n": "int64", "step": "Int64", "low": "float64", "learnt": "boolean", "paired": "bool",
    "words": "object", "seeds": "object", "name": "str", "named": "str",
}  # fmt: skip


@pytest.mark.parametrize("lines", [LINES, []], ids=["full", "empty"])
def test_pandas_columns_have_the_types_of_the_fields(lines):
    frame = as_pandas(FIELDS, lines)
    assert list(frame.columns) == [field.name for field in FIELDS]
    assert len(frame) == len(lines)
    assert {name: str(frame[name].dtype) for name in PANDAS} == PANDAS


def test_pandas_cells_are_numbers_lists_and_json():
    frame = as_pandas(FIELDS, LINES)
    assert frame["step"].isna().tolist() == [False, True]
    assert np.isnan(frame["low"].iloc[1])
    assert frame["words"].tolist() == [["few", "odd"], []]
    assert frame["values"].tolist() == [[0.5, None], []]
    assert frame["named"].iloc[0] == '{"x": [1]}' and frame["named"].isna().iloc[1]


POLARS = {
    "name": polars.String, "n": polars.Int64, "step": polars.Int64, "low": polars.Float64,
    "learnt": polars.Boolean, "paired": polars.Boolean, "words": polars.List(polars.String),
    "seeds": polars.List(polars.Int64), "values": polars.List(polars.Float64),
    "named": polars.String,
}  # fmt: skip


@pytest.mark.parametrize("lines", [LINES, []], ids=["full", "empty"])
def test_polars_columns_have_the_types_of_the_fields(lines):
    frame = as_polars(FIELDS, lines)
    assert dict(frame.schema) == POLARS
    assert len(frame) == len(lines)


def test_polars_cells_are_numbers_lists_and_json():
    frame = as_polars(FIELDS, LINES)
    assert frame["low"].to_list() == [1.0, None]
    assert frame["learnt"].to_list() == [True, None]
    assert frame["words"].to_list() == [["few", "odd"], []]
    assert frame["named"].to_list() == ['{"x": [1]}', None]


@pytest.mark.parametrize(("name", "frame"), [("pandas", as_pandas), ("polars", as_polars)])
def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch, name, frame):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=f"without {name}") as caught:
        frame(FIELDS, LINES)
    assert caught.value.hint == f"pip install {name}"
