"""The demonstration: a real model where it is installed."""

import re
import sys
from pathlib import Path

import pytest

from isoscope.api import demo as module_of_verbs
from isoscope.exhibit.demo import demo

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.real
def test_the_readme_shows_what_the_demo_prints(minilm):
    """Values may differ in their last digits with the machine, within a tenth of a percent."""
    text = re.search(r"<!-- demo:start -->\n(.*?)<!-- demo:end -->", README.read_text(), re.S)[
        1
    ]
    shown = str(demo())
    for ours, theirs in zip(
        shown.strip().splitlines(), text.strip().strip("`").strip().splitlines(), strict=True
    ):
        assert ours.split()[:1] == theirs.split()[:1]
        numbers = [re.findall(r"-?\d[\d.,]*", line) for line in (ours, theirs)]
        mine, yours = ([float(n.replace(",", "")) for n in line] for line in numbers)
        assert mine == pytest.approx(yours, rel=0.02, abs=0.002)


def test_the_verb_is_the_demo():
    assert module_of_verbs is demo


def test_without_a_model_a_planted_cone_is_measured(monkeypatch):
    said = []
    monkeypatch.setattr(sys.modules["isoscope.exhibit.demo"], "PACKAGE", "no_such_package")
    readings = demo(say=said.append)
    assert readings[0].run == "planted-cone"
    assert "isoscope[demo]" in said[0]
