"""A list of readings that shows itself and converts."""

import pickle
import sys
from copy import copy

import numpy as np
import polars
import pytest

from isoscope.errors import ConfigError
from isoscope.report import Readings
from isoscope.report.formats import KEYS


def test_it_is_a_list_and_its_slices_keep_what_belongs_to_all(readings):
    assert isinstance(readings, list)
    assert len(readings) == 4
    part = readings[:2]
    assert isinstance(part, Readings)
    assert part.left_out == readings.left_out
    assert part.isotropic == readings.isotropic
    assert readings[0].measure == "mean-cosine"


@pytest.mark.parametrize("again", [copy, lambda r: pickle.loads(pickle.dumps(r))])
def test_a_copy_is_the_same(readings, again):
    same = again(readings)
    assert same == readings
    assert same.left_out == readings.left_out
    assert str(same) == str(readings)


def test_dictionaries_have_the_keys_of_json(readings):
    first, *_ = readings.to_dict()
    assert tuple(first) == KEYS
    assert first["warnings"] == []
    assert first["step"] is None


def test_pandas(readings):
    frame = readings.to_pandas()
    assert list(frame.columns) == list(KEYS)
    assert frame["value"].tolist() == [each.value for each in readings]
    assert np.isnan(frame["low"].iloc[-1])
    assert frame["step"].isna().all()
    assert frame["n"].dtype == np.int64
    assert frame["warnings"].iloc[2] == ["n < 10 d"]


def test_polars(readings):
    frame = readings.to_polars()
    assert frame.columns == list(KEYS)
    assert frame["value"].to_list() == [each.value for each in readings]
    assert frame["low"].to_list()[-1] is None
    assert frame.schema["step"] == polars.Int64
    assert frame["warnings"].to_list()[2] == ["n < 10 d"]


def test_no_readings_still_have_typed_columns():
    assert Readings().to_pandas()["value"].dtype == np.float64
    assert list(Readings().to_pandas().columns) == list(KEYS)
    assert Readings().to_polars().schema["value"] == polars.Float64


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_package_is_named_with_the_way_to_get_it(readings, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=f"without {name}") as caught:
        getattr(readings, f"to_{name}")()
    assert caught.value.hint == f"pip install {name}"


def test_a_notebook_shows_a_table(readings):
    assert readings._repr_html_().startswith("<table>")
    assert repr(readings) == str(readings)


def test_every_format_is_a_method(readings):
    assert readings.to_json().count("\n") == 4
    assert readings.to_csv().count("\n") == 5
    assert readings.to_markdown().startswith("run notes")
    assert readings.to_latex().startswith("% run notes")
