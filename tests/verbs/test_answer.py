"""Which measures are meant, and what is said when there is nothing to say."""

import pytest

from isoscope.errors import TooFewRowsError, UnknownNameError
from isoscope.store.record import Settings
from isoscope.survey import Survey
from isoscope.verbs.answer import answered, chosen, companions, nothing, options_of


def test_one_name_may_come_without_a_list():
    assert chosen("isoscore") == ("isoscore",)


def test_an_unknown_name_is_refused_with_a_near_one():
    with pytest.raises(UnknownNameError, match="isoscor"):
        chosen(["isoscor"])


def test_companions_are_named_after_their_measure():
    assert all(name.startswith("partition-") for name in companions("partition"))
    assert companions("isoscore") == set()


def test_only_what_measures_are_computed_with_is_an_option():
    assert options_of(Settings(zeta=0.1, rest={"skip_bad": True})) == {"zeta": 0.1}


def test_an_empty_survey_answers_nothing():
    with pytest.raises(TooFewRowsError):
        answered(Survey(), ["isoscore"], "run", {})
    assert nothing({"isoscore": "too few"}).problem == "too few"
