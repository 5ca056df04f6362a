"""dimensions: the numbers of the lab, laid out by site or by dimension."""

import csv
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import TooFewRowsError, UnknownNameError
from isoscope.store.state import StateReader

SOURCES = Path(__file__).parents[2] / "src"


def planted(tmp_path, **measures):
    """A cloud whose mean cosine is owed to dimension 7."""
    rows = np.random.default_rng(3).normal(size=(3000, 32))
    rows[:, 7] += 6
    iso.measure(rows, output=tmp_path / "cloud", **measures)
    return tmp_path / "cloud"


def test_a_planted_dimension_has_nearly_all_and_r_squared_falls_without_it(tmp_path):
    (site,) = found = iso.dimensions(planted(tmp_path))
    assert site.top[0].index == 7
    assert site.top[0].share > 0.98
    assert abs(site.mean_cosine_without[1]) < 0.01
    (table,) = found.tables
    assert [column.head for column in table.columns] == [
        "dimension", "share", "95 % interval", "variance", "kurtosis", "cosine without", "r²",
    ]  # fmt: skip
    first = table.rows[0]
    assert first[0] == "7" and first[1].endswith(" %") and first[5] in ("0.000", "-0.000")
    assert table.rows[1][5:] == ("", "")  # told for 1, 3 and 5
    assert "run cloud, site rows, variant all, mean cosine 0." in table.caption


def test_it_is_what_the_lab_says_of_every_site(tiny_run):
    found = iso.dimensions(tiny_run)
    slow = list(found)
    (table,) = found.tables
    assert [row[0] for row in table.rows] == [each.site for each in slow]
    heads = [column.head for column in table.columns]
    assert heads == [
        "site", "cosine", "top 1", "top 3", "r² -1", "r² -3", "r² -5", "kurtosis", "dimensions",
    ]  # fmt: skip
    row = dict(zip(heads, table.rows[2], strict=True))
    site = slow[2]
    assert row["cosine"] == f"{site.mean_cosine:.3f}"
    assert row["top 3"] == f"{100 * sum(each.share for each in site.top[:3]):.0f} %"
    assert row["r² -5"] == f"{site.r_squared[5]:.2f}"
    assert row["dimensions"] == ", ".join(map(str, site.indices(3)))


def test_json_has_one_line_per_site_and_csv_one_per_dimension(tiny_run):
    found = iso.dimensions(tiny_run, sites=["resid.0", "norm.out"], variant="no-special")
    objects = [json.loads(line) for line in found.to_json().splitlines()]
    assert [(each["run"], each["site"], each["variant"]) for each in objects] == [
        ("tiny", "resid.0", "no-special"),
        ("tiny", "norm.out", "no-special"),
    ]
    lines = list(csv.DictReader(StringIO(found.to_csv())))
    assert [line["rank"] for line in lines] == ["1", "2", "3", "4", "5"] * 2
    first, third = lines[0], lines[2]
    assert int(first["index"]) == objects[0]["top"][0]["index"]
    assert float(first["share"]) == objects[0]["top"][0]["share"]
    assert float(third["r_squared"]) == objects[0]["r_squared"]["3"]
    assert lines[1]["r_squared"] == ""


def test_a_mean_cosine_near_zero_is_warned_of(tmp_path):
    rows = np.random.default_rng(5).normal(size=(4000, 24))
    iso.measure(rows, output=tmp_path / "ball")
    (table,) = iso.dimensions(tmp_path / "ball").tables
    assert table.warnings == (
        "the mean cosine is near zero, so shares of it mean little: rows",
    )


def test_names_that_are_not_there_get_the_nearest(tiny_run):
    with pytest.raises(UnknownNameError, match="no site is called 'norm'"):
        iso.dimensions(tiny_run, sites=["norm"])
    with pytest.raises(UnknownNameError, match="no variant is called 'no-sinks'"):
        iso.dimensions(tiny_run, variant="no-sinks")


def test_a_run_without_what_is_needed_says_so(tmp_path):
    folder = planted(tmp_path, measures=["isoscore"])
    with pytest.raises(TooFewRowsError) as raised:
        iso.dimensions(folder)
    assert raised.value.slug == "summary-not-kept"


def test_it_needs_no_torch(tiny_run):
    code = (
        "import sys, isoscope; found = isoscope.dimensions(sys.argv[1]); str(found);"
        "assert len(found) > 5; sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tiny_run)],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        check=False,
    )
    assert done.returncode == 0


def test_only_the_sites_named_are_read(tiny_run, monkeypatch):
    read_at = []
    original = StateReader.survey_of

    def counted(self, site):
        read_at.append(site)
        return original(self, site)

    monkeypatch.setattr("isoscope.store.run.Run.survey", None)  # what reads a whole state
    monkeypatch.setattr(StateReader, "survey_of", counted)
    iso.dimensions(tiny_run, sites=["resid.1"])
    assert set(read_at) == {"resid.1"}
