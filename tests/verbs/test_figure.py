"""The verb of figures."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import ConfigError, UndefinedError, UnknownNameError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure")
    rows = np.random.default_rng(0).normal(size=(300, 12)) + 0.5
    iso.measure(rows, output=folder / "run", name="cloud")
    return folder / "run"


def test_a_measure_chooses_the_chart(run, tmp_path):
    one = iso.figure(run, tmp_path / "a.svg", measures=["isoscore-debiased"])
    text = one.read_text()
    assert text.count("<svg") == 2
    assert "IsoScore" in text and "Mean share" not in text


def test_plain_and_debiased_are_drawn_differently(run, tmp_path):
    one = iso.figure(run, tmp_path / "a.svg", measures=["isoscore"])
    two = iso.figure(run, tmp_path / "b.svg", measures=["isoscore"], plain=True)
    assert one.read_text() != two.read_text()


@pytest.mark.parametrize("kind", ["spectrum", "dimensions", "causes"])
def test_other_kinds_are_drawn(run, tmp_path, kind):
    assert iso.figure(run, tmp_path / "a.svg", kind=kind).read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"kind": "layer"}, UnknownNameError, "no figure is called 'layer'"),
        ({"kind": "norm"}, UndefinedError, "expected something for a figure of norm"),
        ({"width": 3.0}, ConfigError, "got 3"),
        ({"width": float("nan")}, ConfigError, "got nan"),
        ({"measures": ["isoscor"]}, UnknownNameError, "no measure is called"),
        ({"kind": "spectrum", "site": "row"}, UnknownNameError, "no site is called 'row'"),
        ({"variant": "no-sin"}, UnknownNameError, "no variant is called"),
    ],
)
def test_what_cannot_be_drawn_is_said(run, tmp_path, given, error, match):
    with pytest.raises(error, match=match):
        iso.figure(run, tmp_path / "a.svg", **given)
    assert not (tmp_path / "a.svg").exists()


def test_another_ending_is_refused(run, tmp_path):
    with pytest.raises(ConfigError, match="ends in"):
        iso.figure(run, tmp_path / "a.eps")
