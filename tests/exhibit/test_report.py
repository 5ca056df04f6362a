"""The verb of pages."""

import re
import sys

import numpy as np
import pytest

import isoscope as iso
from isoscope.display.page.pack import unpacked
from isoscope.errors import ConfigError, StoreError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    rows = np.random.default_rng(0).normal(size=(300, 12)) + 0.5
    iso.measure(rows, output=folder / "run", name="cloud")
    return folder / "run"


def test_the_verb_stays_the_verb_although_a_folder_bears_its_name():
    import isoscope.display.section

    assert "isoscope.display.section" in sys.modules
    assert callable(isoscope.report) and isoscope.report is iso.report


def test_a_page_holds_the_readings_of_its_run(run, tmp_path):
    made = iso.report(run, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text == made.text
    table = unpacked(re.search(r'id="values">([^<]*)<', text)[1])["readings"]
    values = [each.value for each in iso.load(run).readings]
    assert table["value"]["is"] == pytest.approx(values, rel=1e-7)
    assert 'id="method-isoscore"' in text


def test_readings_at_hand_have_a_page_too():
    readings = iso.measure(np.random.default_rng(1).normal(size=(90, 5)))
    assert "<section" in iso.report(readings).text


def test_what_is_there_is_not_overwritten(run, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(StoreError, match="which exists"):
        iso.report(run, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "mine"


def test_without_altair_it_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ConfigError, match="without the package altair"):
        iso.report(run)
