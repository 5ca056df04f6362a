"""Which measures are meant, and what is raised when nothing can be read."""

import pytest

from isoscope.accumulate.survey import Survey
from isoscope.errors import TooFewRowsError, UnknownNameError
from isoscope.store.origin import Settings
from isoscope.store.state import State
from isoscope.study.measure_choice import (
    Reads,
    companions,
    measure_names,
    nothing,
    options_of,
    read_state,
)


def test_one_name_may_come_without_a_list():
    assert measure_names("isoscore") == ("isoscore",)


def test_an_unknown_name_is_refused_with_a_near_one():
    with pytest.raises(UnknownNameError, match="isoscor"):
        measure_names(["isoscor"])


def test_companions_are_named_after_their_measure():
    assert all(name.startswith("partition-") for name in companions("partition"))
    assert companions("isoscore") == set()


def test_only_what_measures_are_computed_with_is_an_option():
    assert options_of(Settings(zeta=0.1, rest={"skip_bad": True})) == {"zeta": 0.1}


def test_an_empty_state_gives_no_readings():
    with pytest.raises(TooFewRowsError):
        read_state(State(Survey()), ["isoscore"], "run", {})
    assert nothing({"isoscore": "too few"}).problem == "too few"


def test_no_measure_at_all_is_refused():
    with pytest.raises(TooFewRowsError, match="at least 1 measure"):
        Reads(measures=()).names()


def test_measures_of_texts_are_offered_where_there_are_texts():
    plain, text = Reads().names(), Reads().names(text=True)
    assert set(plain) < set(text)
    assert set(text) < set(Reads(all=True).names(text=True))


def test_the_options_of_measures_come_from_the_spec():
    found = Reads(zeta=0.5, as_published=True).options(documents=False)
    assert found == {"zeta": 0.5, "as_published": True, "documents": False}
