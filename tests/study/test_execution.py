"""Where the work is done is no part of what is done."""

from isoscope.study.option import named_options
from isoscope.study.spec import EngineOptions, Execution
from isoscope.study.survey import SurveySpec


def test_no_option_of_a_spec_says_where_it_runs():
    assert not set(named_options(Execution)) & set(SurveySpec.options())


def test_commands_without_a_run_folder_have_the_same_engines():
    whole, place = named_options(Execution), named_options(EngineOptions)
    assert set(whole) - set(place) == {"output", "overwrite"}
    for name, option in place.items():
        assert (option.default, option.about) == (whole[name].default, whole[name].about)
