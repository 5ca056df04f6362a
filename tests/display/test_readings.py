"""Readings: their table, and JSON lines and CSV letter by letter."""

import csv
import json

import numpy as np
import pytest

from isoscope.display import READINGS, Results
from isoscope.display.readings import KEYS, table

JSON = """\
{"run": "notes", "site": "rows", "variant": "all", "group": "", "step": null, \
"measure": "mean-cosine", "value": 0.463123, "low": 0.46102, "high": 0.46523, \
"n": 5000, "d": 768, "warnings": []}
{"run": "notes", "site": "rows", "variant": "all", "group": "", "step": null, \
"measure": "isoscore", "value": -0.0214, "low": -0.0301, "high": -0.0102, \
"n": 5000, "d": 768, \
"warnings": ["plain value: biased by more than its interval", "n < 10 d"]}
{"run": "notes", "site": "rows", "variant": "all", "group": "", "step": null, \
"measure": "participation", "value": 1.2341e-05, "low": 1.2141e-05, "high": 1.2541e-05, \
"n": 5000, "d": 768, "warnings": ["n < 10 d"]}
{"run": "notes", "site": "rows", "variant": "all", "group": "", "step": null, \
"measure": "alpha", "value": 1.5, "low": null, "high": null, \
"n": 5000, "d": 768, "warnings": []}
"""

CSV = """\
run,site,variant,group,step,measure,value,low,high,n,d,warnings
notes,rows,all,,,mean-cosine,0.463123,0.46102,0.46523,5000,768,
notes,rows,all,,,isoscore,-0.0214,-0.0301,-0.0102,5000,768,\
plain value: biased by more than its interval; n < 10 d
notes,rows,all,,,participation,1.2341e-05,1.2141e-05,1.2541e-05,5000,768,n < 10 d
notes,rows,all,,,alpha,1.5,,,5000,768,
"""


def results(readings):
    return Results(readings, READINGS)


def test_json_lines(readings):
    assert results(readings).to_json() == JSON


def test_csv(readings):
    assert results(readings).to_csv() == CSV


def test_the_keys_are_those_of_the_contract():
    assert KEYS == (
        "run", "site", "variant", "group", "step", "measure",
        "value", "low", "high", "n", "d", "warnings",
    )  # fmt: skip


def test_json_refuses_what_json_has_no_word_for(make):
    with pytest.raises(ValueError, match="JSON compliant"):
        results([make("isoscore", float("nan"))]).to_json()


def test_numpy_numbers_become_plain_ones(make):
    one = make("isoscore", np.float32(0.5), n=np.int64(3), step=np.int32(1))
    assert json.loads(results([one]).to_json()) == json.loads(
        results([make("isoscore", 0.5, n=3, step=1)]).to_json()
    )


def test_json_and_csv_hold_every_digit(make):
    value = 0.1 + 0.2
    (line,) = results([make("isoscore", value)]).to_json().splitlines()
    assert json.loads(line)["value"] == value
    (row,) = csv.DictReader(results([make("isoscore", value)]).to_csv().splitlines())
    assert float(row["value"]) == value


def test_csv_keeps_a_reading_on_its_line(hostile):
    lines = results(hostile).to_csv().splitlines()
    assert len(lines) == 3
    assert "\x1b" not in "".join(lines)


def heads(readings, **options):
    return [column.head for column in table(readings, **options).columns]


def test_what_all_readings_share_goes_into_the_caption(make):
    laid = table([make("isoscore", 0.5), make("alpha", 1.0)])
    assert laid.caption == "run notes, site rows, variant all"
    assert [column.head for column in laid.columns] == ["measure", "value", "n", "d"]


def test_what_differs_becomes_a_column(make):
    readings = [make("isoscore", 0.5, site="resid.0", step=0), make("isoscore", 0.4, step=10)]
    assert heads(readings) == ["site", "step", "measure", "value", "n", "d"]


def test_a_warning_is_listed_once_and_marked_where_it_belongs(make):
    readings = [
        make("a", 0.5, warnings=("few rows",)),
        make("b", 0.5, warnings=("duplicates", "few rows")),
        make("c", 0.5),
    ]
    laid = table(readings)
    assert laid.warnings == ("few rows", "duplicates")
    assert laid.columns[-1].cells == ("1", "2 1", "")


def test_a_reference_is_shown_for_its_measure_and_size_only(make):
    readings = [make("a", 0.5), make("a", 0.5, n=7), make("b", 0.5)]
    laid = table(readings, isotropic={("a", 5000, 768): 1.0})
    assert next(c for c in laid.columns if c.head == "isotropic").cells == ("1", "", "")


def test_no_readings_have_no_rows():
    assert table([]).rows == []


def test_several_sites_have_a_line_each_and_a_hint(make):
    wide = results([make("isoscore", 0.5), make("isoscore", 0.4, site="resid.0")])
    (overview,), (whole,) = wide.overview, wide.tables
    assert overview.columns[0].cells == ("rows", "resid.0")
    assert whole.columns[-3].head == "value"
    assert wide.notes()[0].startswith("one site in full")


def test_remarks_stand_beside_every_format_and_what_was_left_out_beside_data(readings):
    readings.remarks = ("mind this",)
    left_out = [f"left out: {text}" for text in readings.left_out]
    for style in ("json", "csv"):
        assert list(readings.notes(style)) == [*left_out, "note: mind this"]
    for style in ("", "latex", "markdown"):
        assert readings.notes(style) == ("note: mind this",)


def test_dictionaries_have_the_keys_of_json(readings):
    first, *_ = readings.to_dict()
    assert tuple(first) == KEYS == tuple(field.name for field in READINGS.fields)
    assert first["warnings"] == []
    assert first["step"] is None
