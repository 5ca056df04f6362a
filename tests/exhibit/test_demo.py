"""The demonstration: tests/cli/test_demo.py runs it on a real model."""

import sys

from isoscope.api import demo as module_of_verbs
from isoscope.exhibit.demo import demo


def test_the_verb_is_the_demo():
    assert module_of_verbs is demo


def test_without_a_model_a_planted_cone_is_measured(small_cone, monkeypatch):
    said = []
    module = sys.modules["isoscope.exhibit.demo"]
    monkeypatch.setattr(module, "PACKAGE", "no_such_package")
    monkeypatch.setattr(module, "measure_cone", lambda progress: small_cone)
    readings = demo(say=said.append)
    assert readings[0].run == "planted-cone"
    assert "isoscope[demo]" in said[0]
