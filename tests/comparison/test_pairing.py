"""Whether two runs read the same documents."""

from isoscope.comparison.pairing import differences, pairing
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
    assert not how.at("rows") and "other documents" in how.why


def test_a_collection_without_a_sample_is_not_paired(collections):
    few = collections("a", measures=["mean-cosine"])
    how = pairing(load(few), load(collections("b", measures=["mean-cosine"])))
    assert not how.at("rows")


def test_what_else_differs_is_told(handmade):
    found = differences(load(handmade("a", ROW)), load(handmade("b", ROW, seed=1, d=16)))
    assert found == ["width 8 and 16", "seed 0 and 1"]


def test_long_values_are_cut(handmade):
    long = handmade("a", ROW)
    run, other = load(long), load(long)
    other.settings.rest["prompt"] = "x" * 100
    assert differences(run, other) == ["prompt none and xxxxxxxx…"]
