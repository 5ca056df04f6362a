"""Summaries of a run, site by site."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.accumulate import Tally
from isoscope.api import measure
from isoscope.errors import UnknownNameError
from isoscope.store.state import StateReader
from isoscope.study.saved_runs import summaries_of


def counts(run, sites, variant):
    return {
        (site, name): parts[Tally].finalize().count
        for site, name, parts in summaries_of(iso.load(run), sites, variant)
    }


def test_every_site_is_given_once_in_the_variant(tiny_run):
    whole = iso.load(tiny_run)
    sites = {site for site, _ in whole.survey.held}
    found = counts(tiny_run, None, "no-special")
    assert {site for site, _ in found} == sites
    assert len(found) == len(sites)
    assert found["embed.weight", "all"] > 0  # a matrix has no special rows
    everything = counts(tiny_run, ["resid.0"], "all")
    assert found["resid.0", "no-special"] < everything["resid.0", "all"]


def test_vectors_on_disk_have_one_variant(tmp_path):
    measure(np.random.default_rng(0).normal(size=(50, 4)), output=tmp_path / "rows")
    assert counts(tmp_path / "rows", None, "no-sink") == {("rows", "all"): 50}


def test_unknown_sites_and_variants_are_named(tiny_run):
    with pytest.raises(UnknownNameError, match=r"no site is called 'resid\.9'"):
        counts(tiny_run, ["resid.9"], "all")
    with pytest.raises(UnknownNameError, match="no variant is called 'no-sinks'") as raised:
        counts(tiny_run, None, "no-sinks")
    assert raised.value.slug == "unknown-variant"


def test_only_the_sites_named_are_read(tiny_run, monkeypatch):
    read_at = []
    original = StateReader.survey_of

    def counted(self, site):
        read_at.append(site)
        return original(self, site)

    monkeypatch.setattr("isoscope.store.run.Run.survey", None)  # what reads a whole state
    monkeypatch.setattr(StateReader, "survey_of", counted)
    counts(tiny_run, ["resid.1"], "all")
    assert read_at == ["resid.1"]
