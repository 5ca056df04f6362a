"""JSON lines, CSV, text and Markdown, letter by letter."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from isoscope.report import Readings
from isoscope.report.formats import KEYS, as_csv, as_json, as_markdown, as_text

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

TEXT = """\
run notes, site rows, variant all

measure            value           95 % interval  isotropic      n    d  warnings
mean-cosine       0.4631        [0.4610, 0.4652]          0  5,000  768
isoscore         -0.0214      [-0.0301, -0.0102]          1  5,000  768  1 2
participation  1.234e-05  [1.214e-05, 1.254e-05]             5,000  768  2
alpha              1.500                                     5,000  768

1  plain value: biased by more than its interval
2  n < 10 d
left out: twonn: needs at least 3 distinct rows, got 2
"""

MARKDOWN = r"""run notes, site rows, variant all

| measure | value | 95 % interval | isotropic | n | d | warnings |
| :-- | --: | --: | --: | --: | --: | :-- |
| mean-cosine | 0.4631 | [0.4610, 0.4652] | 0 | 5,000 | 768 |  |
| isoscore | -0.0214 | [-0.0301, -0.0102] | 1 | 5,000 | 768 | 1 2 |
| participation | 1.234e-05 | [1.214e-05, 1.254e-05] |  | 5,000 | 768 | 2 |
| alpha | 1.500 |  |  | 5,000 | 768 |  |

1. plain value: biased by more than its interval
2. n &lt; 10 d

- left out: twonn: needs at least 3 distinct rows, got 2
"""


def test_json_lines(readings):
    assert as_json(readings) == JSON


def test_csv(readings):
    assert as_csv(readings) == CSV


def test_text(readings):
    assert as_text(readings.table) == TEXT


def test_markdown(readings):
    assert as_markdown(readings.table) == MARKDOWN


def test_the_keys_are_those_of_the_contract():
    assert KEYS == (
        "run", "site", "variant", "group", "step", "measure",
        "value", "low", "high", "n", "d", "warnings",
    )  # fmt: skip


def test_json_refuses_what_json_has_no_word_for(make):
    with pytest.raises(ValueError, match="JSON compliant"):
        as_json([make("isoscore", float("nan"))])


def test_numpy_numbers_become_plain_ones(make):
    one = make("isoscore", np.float32(0.5), n=np.int64(3), step=np.int32(1))
    assert json.loads(as_json([one])) == json.loads(
        as_json([make("isoscore", 0.5, n=3, step=1)])
    )


def test_json_and_csv_hold_every_digit(make):
    value = 0.1 + 0.2
    (line,) = as_json([make("isoscore", value)]).splitlines()
    assert json.loads(line)["value"] == value
    (row,) = csv.DictReader(as_csv([make("isoscore", value)]).splitlines())
    assert float(row["value"]) == value


def test_csv_keeps_a_reading_on_its_line(hostile):
    lines = as_csv(hostile).splitlines()
    assert len(lines) == 3
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    "style", ["to_json", "to_markdown", "to_latex", "__str__", "_repr_html_"]
)
def test_no_format_lets_a_control_character_through(hostile, style):
    text = getattr(hostile, style)()
    assert text.replace("\n", "").isprintable()
    if style == "to_json":
        return
    assert "<script" not in text or style in ("__str__", "to_latex")


def test_a_hostile_name_stays_in_its_cell(hostile):
    table = as_markdown(hostile.table).split("\n\n")[1].splitlines()
    bars = [line.replace("\\|", "").count("|") for line in table]
    assert len(set(bars)) == 1


def test_wide_characters_keep_the_columns_in_line(make):
    readings = Readings([make("isoscore", 0.5, run="日本"), make("isoscore", 0.5, run="abcd")])
    first, second = str(readings).splitlines()[-2:]
    assert first.index("isoscore") + 2 == second.index("isoscore")  # two wide ones before it


def test_no_readings_say_so():
    nothing = Readings(left_out=["alpha: needs at least 10 rows, got 2"])
    for text in (as_text(nothing.table), as_markdown(nothing.table)):
        assert text.startswith("no readings")
        assert "alpha: needs at least 10 rows, got 2" in text
    assert as_json(nothing) == ""


def test_a_group_or_step_is_told(make):
    one = make("isoscore", 0.5)
    readings = Readings([one, replace(one, group="rare", step=100)])
    assert "rare" in str(readings)
    assert "100" in str(readings)
