"""How two runs are paired."""

import pytest

from isoscope.accumulate import Tally
from isoscope.comparison.pairing import differences, match_sites, pairing
from isoscope.store import load

ROW = [("embed", "isoscore", 0.5, 0.4, 0.6)]


def test_the_same_corpus_and_seed_are_paired(handmade):
    how = pairing(load(handmade("a", ROW)), load(handmade("b", ROW)))
    assert how.at("embed") and how.at("embed.weight")
    assert how.why == "paired by document group: both read the same 40 documents of texts"


def test_other_seeds_are_independent(handmade):
    how = pairing(load(handmade("a", ROW)), load(handmade("b", ROW, seed=1)))
    assert not how.at("embed") and not how.at("embed.weight")
    assert how.why.startswith("independent: the seeds differ (0 and 1)")


def test_other_corpora_are_independent_but_matrices_have_the_same_rows(handmade):
    how = pairing(load(handmade("a", ROW)), load(handmade("b", ROW, fingerprint="g")))
    assert not how.at("embed")
    assert how.at("embed.weight")
    assert how.why == "independent: the corpora differ (texts and texts)"


def test_vectors_with_the_same_document_ids_are_paired(collections):
    how = pairing(load(collections("a")), load(collections("b")))
    assert how.at("rows") and "100%" in how.why


def test_vectors_with_other_ids_are_independent(collections):
    how = pairing(load(collections("a")), load(collections("b", prefix="note")))
    assert not how.at("rows") and "different documents" in how.why


@pytest.mark.parametrize("measures", [["mean-cosine"], ["isoscore"], ["norm-spread"]])
def test_pairing_does_not_depend_on_the_measures(collections, measures):
    a, b, c = (
        collections(name, measures=measures, prefix=prefix)
        for name, prefix in (("a", "text"), ("b", "text"), ("c", "note"))
    )
    assert pairing(load(a), load(b)).at("rows")
    assert not pairing(load(a), load(c)).at("rows")


def test_a_run_of_an_earlier_version_is_paired_by_its_sample_of_rows(collections, monkeypatch):
    monkeypatch.setattr(Tally, "_keep", lambda _self, _keys: None)
    old = load(collections("old")), load(collections("old too"))
    bare = load(collections("bare", measures=["mean-cosine"]))
    monkeypatch.undo()
    new = load(collections("new"))
    for pair in (old, (old[0], new), (new, old[0])):
        assert pairing(*pair).at("rows")
    assert not pairing(bare, new).at("rows")


def test_what_else_differs_is_reported(handmade):
    found = differences(load(handmade("a", ROW)), load(handmade("b", ROW, seed=1, d=16)))
    assert found == ["width 8 and 16", "seed 0 and 1"]


def test_long_values_are_cut(handmade):
    long = handmade("a", ROW)
    run, other = load(long), load(long)
    other.settings.rest["prompt"] = "x" * 100
    assert differences(run, other) == ["prompt none and xxxxxxxx…"]


def layers(number, family="resid"):
    return [f"{family}.{layer}" for layer in range(number)]


def test_by_name_sites_of_both_are_kept_in_the_order_of_the_first():
    assert match_sites(["c", "a", "b"], ["b", "c", "d"], "name") == [("c", "c"), ("b", "b")]


def test_by_depth_first_meets_first_and_last_meets_last():
    pairs = match_sites(["embed", *layers(3)], ["embed", *layers(7)], "depth")
    assert pairs == [
        ("embed", "embed"),
        ("resid.0", "resid.0"),
        ("resid.1", "resid.3"),
        ("resid.2", "resid.6"),
    ]


def test_by_depth_the_deeper_model_may_come_first():
    pairs = match_sites(layers(7), layers(3), "depth")
    assert pairs == [("resid.0", "resid.0"), ("resid.3", "resid.1"), ("resid.6", "resid.2")]


def test_by_depth_families_do_not_mix_and_heads_go_by_name():
    first = [*layers(2), "attn.0", "q.0.1", "q.1.0"]
    second = [*layers(4), "mlp.0", "q.0.1"]
    assert match_sites(first, second, "depth") == [
        ("resid.0", "resid.0"),
        ("resid.1", "resid.3"),
        ("q.0.1", "q.0.1"),
    ]


def test_by_depth_counts_the_layers_of_the_model_not_those_surveyed():
    some, every = ["resid.0", "resid.5"], layers(24)
    counts = {"resid": 12}, {"resid": 24}
    # resid.5 of 12 is at 5/11 of the way: 10.45 of 23
    assert match_sites(some, every, "depth", counts) == [
        ("resid.0", "resid.0"),
        ("resid.5", "resid.10"),
    ]
    assert match_sites(every, some, "depth", counts[::-1]) == [
        ("resid.0", "resid.0"),
        ("resid.10", "resid.5"),
    ]


def test_by_depth_first_and_last_layer_do_not_meet():
    counts = {"resid": 6}, {"resid": 6}
    assert match_sites(["resid.0"], ["resid.5"], "depth", counts) == []
    assert match_sites(["resid.2"], ["resid.5"], "depth", counts) == []


def test_one_layer_meets_the_first():
    assert match_sites(layers(1), layers(5), "depth") == [("resid.0", "resid.0")]


def test_hundreds_of_layers_are_match_sites():
    pairs = match_sites(layers(200), layers(400), "depth")
    assert len(pairs) == 200 and pairs[-1] == ("resid.199", "resid.399")
