"""The plan of a study follows from its arguments."""

import inspect
from types import SimpleNamespace

import pytest

from isoscope.capture.feed import feed_for
from isoscope.errors import IsoscopeError
from isoscope.source.corpus import open_corpus
from isoscope.survey.frequency import Frequencies
from isoscope.verbs import survey
from isoscope.verbs.answer import chosen
from isoscope.verbs.model import opened
from isoscope.verbs.plan import (
    check_truncation,
    chosen_documents,
    chosen_sites,
    has_tokens,
    pooling_for,
    tasks_for,
    turns_for,
)

DEFAULTS = {name: each.default for name, each in inspect.signature(survey).parameters.items()}


@pytest.fixture(scope="module")
def found(tiny):
    return opened(tiny)


def tasks(found, texts, *, sites=("resid.0", "embed.weight"), turns=1, **given):
    settings = {**DEFAULTS, "tokens": None, **given}
    corpus, feed = open_corpus(texts), feed_for(found.loaded)
    frequencies = Frequencies()
    names = chosen(settings["measures"], all=settings["all"])
    selection = chosen_documents(corpus, feed, settings, frequencies)
    return tasks_for(found, corpus, selection, sites, turns, True, settings, names, frequencies)


def slug_of(call, *given, **named):
    with pytest.raises(IsoscopeError) as caught:
        call(*given, **named)
    return caught.value.slug


def test_every_document_is_in_one_unit(found, texts):
    *units, matrices = tasks(found, texts, unit=150)
    assert len(units) > 3
    ordinals = [each for unit in units for batch in unit["batches"] for each in batch]
    assert sorted(ordinals) == list(range(len(texts)))
    assert matrices["weights"] == ["embed.weight"]
    assert "batches" not in matrices


def test_turns_share_the_sites_and_repeat_the_documents(found, texts):
    one, two = tasks(found, texts, sites=("embed", "resid.0", "resid.1"), turns=2)
    assert one["sites"] == ["embed", "resid.1"]
    assert two["sites"] == ["resid.0"]
    assert one["batches"] == two["batches"]


@pytest.mark.parametrize(
    "given",
    [{"seed": 1}, {"length": 16}, {"sinks": 5.0}, {"prompt": "the"}, {"batch": 3},
     {"all": True}, {"pooling": "mean"}, {"truncate_dim": 3}, {"tokens": 100},
     {"measures": ["isoscore"]}],
)  # fmt: skip
def test_what_changes_a_summary_changes_the_work(found, texts, given):
    assert tasks(found, texts, **given) != tasks(found, texts)


@pytest.mark.parametrize("given", [{"zeta": 0.5}, {"as_published": True}, {"skip_bad": True}])
def test_what_is_only_read_differently_does_not(found, texts, given):
    assert tasks(found, texts, **given) == tasks(found, texts)


def test_another_text_is_other_work(found, texts):
    assert tasks(found, [*texts[:-1], "the river"]) != tasks(found, texts)


def test_a_corpus_of_single_tokens_is_too_short(decoder):
    found = opened(decoder)
    corpus = open_corpus(["river", "boats"])
    given = {**DEFAULTS, "tokens": None}
    wanted = (corpus, feed_for(found.loaded), given, Frequencies())
    assert slug_of(chosen_documents, *wanted) == "corpus-short"


def test_sites_come_in_the_order_of_the_model(found):
    assert chosen_sites(found, ["resid.1", "embed"], False) == (
        "embed",
        "resid.1",
        "embed.weight",
    )
    assert chosen_sites(found, None, True)[-1] == "pooled"
    assert "pooled" not in chosen_sites(found, ["resid"], True)
    assert chosen_sites(found, ["pooled"], True) == ("pooled",)
    assert slug_of(chosen_sites, found, ["pooled"], False) == "pooling"


def test_pooling_is_the_models_own_unless_asked_for(found):
    assert pooling_for(found, None) is None
    assert pooling_for(found, "last").mode == "last"
    assert slug_of(pooling_for, found, "lats") == "unknown-pooling"


def test_only_pooled_vectors_can_be_cut():
    check_truncation(("pooled",), 3)
    check_truncation(("resid.0",), None)
    assert slug_of(check_truncation, ("resid.0",), 3) == "pooling"


def test_turns_are_never_more_than_the_sites(found, monkeypatch):
    monkeypatch.setenv("ISOSCOPE_MEMORY", "1000")
    said = []
    given = {**DEFAULTS, "say": said.append}
    assert turns_for(found, ("embed", "resid.0", "embed.weight"), given) == 2
    assert said[0].endswith("done in 2 turns")
    assert turns_for(found, ("embed",), {**given, "turns": 4}) == 4


def test_models_that_read_or_write_text_have_tokens(found):
    assert has_tokens(found)
    listens = SimpleNamespace(takes="sound")
    writes = SimpleNamespace(names=("enc.embed", "dec.embed"))
    assert has_tokens(SimpleNamespace(loaded=listens, sites=writes))
    hears = SimpleNamespace(names=("embed", "resid.0"))
    assert not has_tokens(SimpleNamespace(loaded=listens, sites=hears))
