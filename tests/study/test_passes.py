"""Sites collect what their family needs, and what was asked for by name."""

import isoscope as iso
from isoscope.accumulate import BandCells, Directions, Vocabulary
from isoscope.study.passes import SiteKinds

NAMES = ("mean-cosine", "isoscore", "self-similarity", "mean-cosine-centred")


def test_a_head_does_not_pay_for_what_only_tokens_need():
    kinds = SiteKinds(NAMES)
    assert {BandCells, Vocabulary} <= set(kinds.first("resid.3"))
    assert not {BandCells, Vocabulary} & set(kinds.first("q.3.11"))
    assert Directions in kinds.first("q.3.11")


def test_what_is_named_is_collected_everywhere():
    kinds = SiteKinds(NAMES, named=["self-similarity"])
    assert Vocabulary in kinds.first("q.3.11")


def test_second_passes_are_kept_apart():
    kinds = SiteKinds(NAMES)
    assert kinds.second("resid.0")
    assert not set(kinds.first("resid.0")) & set(kinds.second("resid.0"))
    assert set(kinds.of("resid.0")) == {*kinds.first("resid.0"), *kinds.second("resid.0")}


def test_a_survey_of_heads_reads_token_measures_only_where_they_are_named(tiny, texts):
    usual = iso.survey(tiny, texts, sites="q.1.0", tokens=None)
    assert {r.site for r in usual} == {"q.1.0"}
    assert not [r for r in usual if r.group or r.measure == "self-similarity"]
    assert any("self-similarity" in each for each in usual.left_out)
    named = iso.survey(tiny, texts, sites="q.1.0", tokens=None, measures=["self-similarity"])
    assert [r for r in named if r.measure == "self-similarity"]
