"""The record of a measure, and the decorator that files it."""

from importlib import import_module

import pytest

from isoscope.errors import UnknownNameError
from isoscope.measures import MEASURES, Measure, level
from isoscope.measures.base import Companion, measure
from isoscope.measures.view import Units
from isoscope.registry import Registry

RECORD = {
    "reads": Units,
    "isotropic": 0.0,
    "collapsed": lambda n, d: n / d,
    "unmoved_by": {"scale"},
    "cite": "roy2007",
    "formula": "x",
    "misleads": "Always.",
}


@pytest.fixture
def filed(monkeypatch):
    """An empty registry in place of the real one."""
    empty = Registry("measure")
    monkeypatch.setattr(import_module("isoscope.measures.base"), "MEASURES", empty)
    return empty


def test_the_function_is_left_untouched(filed):
    def plain(_seen: Units) -> float:
        """How plain it is."""
        return 1.0

    assert measure("plain", **RECORD)(plain) is plain
    assert filed["plain"].compute is plain


def test_the_record_says_what_the_function_takes_and_is(filed):
    @measure("plain", second_pass=True, **RECORD)
    def plain(_seen: Units, *, zeta: float = 0.2) -> float:
        """How plain it is.

        Not in the title.
        """
        return zeta

    record = filed["plain"]
    assert record.title == "How plain it is."
    assert record.options == ("zeta",)
    assert record.unmoved_by == frozenset({"scale"})
    assert record.second_pass and not record.default
    assert record.published is record.companions is record.interval is None


def test_a_note_carries_what_a_reader_should_know(filed):
    @measure("plain", **RECORD)
    def plain(_seen: Units) -> float:
        """How plain it is."""
        return 1.0

    note = filed["plain"].note
    assert (note.name, note.title) == ("plain", "How plain it is.")
    assert (note.formula, note.cite, note.misleads) == ("x", "roy2007", "Always.")


def test_a_function_without_a_docstring_has_no_title():
    record = Measure("bare", compute=lambda _seen: 0.0, **{**RECORD, "unmoved_by": frozenset()})
    assert record.title == ""


def test_a_name_is_given_once(filed):
    def plain(_seen: Units) -> float:
        """How plain it is."""
        return 1.0

    measure("plain", **RECORD)(plain)
    with pytest.raises(ValueError, match="measure 'plain' is registered twice"):
        measure("plain", **RECORD)(plain)


def test_an_invariance_must_be_claimed_or_renounced(filed):
    with pytest.raises(KeyError, match="unmoved_by"):
        measure("plain", reads=Units)(lambda _seen: 0.0)


def test_a_level_is_a_number_a_function_of_the_size_or_nothing():
    assert level(0.5, 10, 3) == 0.5
    assert level(lambda n, d: n * d, 10, 3) == 30
    assert level(None, 10, 3) is None


def test_every_measure_is_named_after_its_file():
    for record in MEASURES.values():
        module = record.compute.__module__.rpartition(".")[2]
        assert module.replace("_", "-") == record.name


def test_a_misspelt_measure_is_put_right():
    with pytest.raises(UnknownNameError, match="did you mean 'isoscore'"):
        _ = MEASURES["isoscor"]


def test_a_companion_is_a_number_with_a_suffix():
    beside = Companion("log", -1.0, None, None)
    assert (beside.suffix, beside.value, beside.low, beside.high) == ("log", -1.0, None, None)
