"""The causes of a site, from the accumulators of its classes of rows."""

import pytest

from isoscope.accumulate.survey import Survey
from isoscope.causes.cause import NO_BANDS, NO_COUNTS, site_causes
from planted_survey import surveyed


def test_sinks_are_distinguished_from_the_mean_and_named():
    held = surveyed().held
    causes = {each.cause: each for each in site_causes(held, "resid.1", "all", "r")}
    # a ninth of the rows are sinks: C falls from (8/9 m)^2 + (1/9)^2 to m^2, m^2 = 0.15^2
    truth = 1 - 0.15**2 / ((8 / 9 * 0.15) ** 2 + (1 / 9) ** 2)
    assert causes["sinks"].share == pytest.approx(truth, abs=0.05)
    assert causes["sinks"].detail == "300 of 2700 rows: '<s>' at position 0"
    assert causes["sinks"].named[0]["context"].startswith("<s> document")
    assert causes["mean"].share > 0.9
    assert causes["mean"].warnings == ()


def test_a_variant_without_sinks_has_none():
    held = surveyed().held
    causes = {each.cause: each for each in site_causes(held, "resid.1", "no-sink", "r")}
    assert causes["sinks"].share == pytest.approx(0, abs=1e-12)
    assert causes["sinks"].detail == "there are none"


def test_tokens_that_were_not_counted_are_warned_of():
    causes = site_causes(surveyed(counted=False).held, "resid.1", "all", "r")
    assert "frequency" not in {each.cause for each in causes}
    assert {each.warnings for each in causes} == {(NO_COUNTS,)}


def test_a_run_of_an_older_version_is_explained_by_removal_and_it_says_so():
    survey = surveyed()
    meta, arrays = survey.to_state()
    for place in meta["places"]:  # what was kept before there were sums by pair of bands
        width = place["kinds"].pop("BandCells")
        place["kinds"] |= {"Bands": width, "Crossing": width}
    arrays = {name.replace("BandCells", "Bands"): each for name, each in arrays.items()}
    causes = site_causes(Survey.from_state(meta, arrays).held, "resid.1", "all", "r")
    assert [each.cause for each in causes] == ["sinks", "dimensions"]
    assert {each.warnings for each in causes} == {(NO_BANDS,)}
    now = site_causes(survey.held, "resid.1", "all", "r")
    assert causes[0].share == pytest.approx(now[0].share, abs=1e-7)
