"""Tables of readings: one line per reading, or one per site."""

import csv
import json

import numpy as np
import pytest

from isoscope.display import READINGS, Results
from isoscope.display.readings import (
    USUAL,
    WIDEST,
    has_several_sites,
    layer_table,
    reading_table,
    usual_measures,
)
from isoscope.types import Reading

KEYS = Reading.__match_args__  # the names of its fields, in their order

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
    return [column.head for column in reading_table(readings, **options).columns]


def test_what_all_readings_share_goes_into_the_caption(make):
    laid = reading_table([make("isoscore", 0.5), make("alpha", 1.0)])
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
    laid = reading_table(readings)
    assert laid.warnings == ("few rows", "duplicates")
    assert laid.columns[-1].cells == ("1", "2 1", "")


def test_a_reference_is_shown_for_its_measure_and_size_only(make):
    readings = [make("a", 0.5), make("a", 0.5, n=7), make("b", 0.5)]
    laid = reading_table(readings, isotropic={("a", 5000, 768): 1.0})
    assert next(c for c in laid.columns if c.head == "isotropic").cells == ("1", "", "")


def test_no_readings_have_no_rows():
    assert reading_table([]).rows == []


def test_several_sites_have_a_line_each_and_a_hint(make):
    wide = results([make("isoscore", 0.5), make("isoscore", 0.4, site="resid.0")])
    (overview,), (whole,) = wide.overview, wide.tables
    assert overview.columns[0].cells == ("rows", "resid.0")
    assert whole.columns[-3].head == "value"
    assert wide.notes()[0].startswith("all measures of a site")


def test_remarks_stand_beside_every_format_and_what_was_excluded_beside_data(readings):
    readings.remarks = ("mind this",)
    left_out = [f"skipped: {text}" for text in readings.left_out]
    for style in ("json", "csv"):
        assert list(readings.notes(style)) == [*left_out, "note: mind this"]
    for style in ("", "latex", "markdown"):
        assert readings.notes(style) == ("note: mind this",)


def test_dictionaries_have_the_keys_of_json(readings):
    first, *_ = readings.to_dict()
    assert tuple(first) == KEYS == tuple(field.name for field in READINGS.fields)
    assert first["warnings"] == []
    assert first["step"] is None


def reading(site, measure, value=0.5, **given):
    settings = {
        "run": "r", "variant": "all", "group": "", "step": None, "low": None, "high": None,
        "n": 100, "d": 8, "warnings": (), **given,
    }  # fmt: skip
    return Reading(site=site, measure=measure, value=value, **settings)


def cells(table):
    return {column.head: column.cells for column in table.columns}


def test_a_line_is_a_site():
    found = [
        reading(site, m, v) for site, v in (("embed", 0.1), ("resid.0", 0.2)) for m in "ab"
    ]
    table = cells(layer_table(found))
    assert table["site"] == ("embed", "resid.0")
    assert list(table) == ["site", "a", "b", "n", "d"]
    assert [float(each) for each in table["a"]] == pytest.approx([0.1, 0.2])
    assert table["n"] == ("100", "100")


def test_an_interval_is_half_its_width():
    table = cells(layer_table([reading("x", "a", 0.5, low=0.4, high=0.6), reading("y", "a")]))
    value, _, half = table["a"][0].partition(" ±")
    assert float(value) == 0.5
    assert float(half) == pytest.approx(0.1)
    assert "±" not in table["a"][1]


def test_what_is_missing_is_a_dash():
    table = cells(layer_table([reading("x", "a"), reading("y", "b")]))
    assert table["a"][1] == table["b"][0] == "–"


def test_variants_are_shown_where_they_have_other_rows():
    found = [
        reading("x", "a"), reading("x", "a", variant="no-sink", n=99),
        reading("x", "a", variant="no-special", n=50),
        reading("y", "a"), reading("y", "a", variant="no-sink"),
    ]  # fmt: skip
    table = cells(layer_table(found))
    assert list(zip(table["site"], table["variant"], strict=True)) == [
        ("x", "all"), ("x", "no-sink"), ("y", "all"),
    ]  # fmt: skip


def test_a_variant_requested_alone_is_shown():
    table = cells(layer_table([reading(s, "a", variant="no-special") for s in "xy"]))
    assert table["site"] == ("x", "y")


def test_few_measures_are_all_shown_and_of_many_the_usual():
    few = [reading("x", f"m{i}") for i in range(WIDEST)]
    assert usual_measures(few) == [f"m{i}" for i in range(WIDEST)]
    many = [reading("x", name) for name in (*USUAL[::-1], *(f"m{i}" for i in range(9)))]
    assert usual_measures(many) == list(USUAL)
    strange = [reading("x", f"m{i}") for i in range(9)]
    assert usual_measures(strange) == [f"m{i}" for i in range(WIDEST)]


def test_what_all_lines_share_is_the_caption():
    table = layer_table([reading("x", "a"), reading("y", "a")], left_out=["b: too few rows"])
    assert table.caption == "run r, variant all"
    assert "b: too few rows" in str(table)


def test_names_out_of_files_are_made_harmless():
    table = cells(layer_table([reading("x\x1b[31m", "a"), reading("y", "a")]))
    assert "\x1b" not in table["site"][0]


def test_several_sites_are_wide():
    assert has_several_sites([reading("x", "a"), reading("y", "a")])
    assert not has_several_sites([reading("x", "a"), reading("x", "b")])
