"""Which measures are meant, and what is raised when nothing can be read."""

import numpy as np
import pytest

from isoscope.accumulate.survey import Survey
from isoscope.errors import TooFewRowsError, UnknownNameError
from isoscope.store.origin import Settings
from isoscope.store.state import State
from isoscope.study.lanes import run
from isoscope.study.measure_choice import (
    Reads,
    companions,
    measure_names,
    nothing,
    options_of,
    read_sites,
    read_state,
)
from isoscope.study.reading import kinds_for, read_survey
from isoscope.types import Chunk


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


@pytest.mark.parametrize("wide", [1024, 2])
def test_sites_read_two_at_a_time_are_those_read_one_by_one(monkeypatch, wide):
    monkeypatch.setattr("isoscope.study.measure_choice.WIDE", wide)
    rng = np.random.default_rng(1)
    names = measure_names(None)
    surveys = []
    for site in ("resid.0", "resid.1", "resid.2"):
        chunks = [Chunk(rng.normal(size=(300, 6)), "rows", 0)]
        surveys.append(run(chunks, (site, "all"), kinds_for(names))[0])
    found, left_out = read_sites(iter(surveys), names, "run", {})
    one_by_one = [read_survey(survey, names, run="run") for survey in surveys]
    assert found == [reading for readings, _ in one_by_one for reading in readings]
    assert left_out == one_by_one[0][1]


def test_a_measure_that_is_missing_at_some_sites_is_named_with_them():
    rng = np.random.default_rng(1)
    names = ["mean-cosine", "mean-share", "twonn"]
    surveys = []
    for site, rows in (
        ("resid.0", rng.normal(size=(300, 6))),
        ("resid.1", np.zeros((300, 6))),
        ("resid.2", rng.normal(size=(2, 6))),
    ):
        chunks = [Chunk(rows, "rows", 0)]
        surveys.append(run(chunks, (site, "all"), kinds_for(names))[0])
    _, left_out = read_sites(iter(surveys), names, "run", {})
    assert {"mean-cosine at resid.1", "twonn at resid.2"} <= left_out.keys()
    _, everywhere = read_sites(iter(surveys[1:2]), names, "run", {})
    assert "mean-cosine" in everywhere and not any(" at " in each for each in everywhere)
