"""Documents, sites, pooling and turns are chosen from the options alone."""

from types import SimpleNamespace

import pytest

from isoscope.capture.feed import feed_for
from isoscope.errors import IsoscopeError
from isoscope.source.corpus import open_corpus
from isoscope.study.frequency import Frequencies
from isoscope.study.model import load_model
from isoscope.study.selection import (
    has_tokens,
    pooling_for,
    select_documents,
    select_sites,
    turns_for,
)


@pytest.fixture(scope="module")
def found(tiny):
    return load_model(tiny)


def slug_of(call, *given, **named):
    with pytest.raises(IsoscopeError) as caught:
        call(*given, **named)
    return caught.value.slug


def test_a_corpus_of_single_tokens_is_too_short(speaker):
    feed = feed_for(load_model(speaker).loaded)
    wanted = (open_corpus(["river", "boats"]), feed, Frequencies())
    options = {"seed": 0, "tokens": None, "skip_bad": False}
    assert slug_of(select_documents, *wanted, **options) == "corpus-short"


def test_documents_are_drawn_until_there_are_tokens_enough(found, texts):
    corpus, feed = open_corpus(texts), feed_for(found.loaded)
    counts = Frequencies()
    drawn = select_documents(corpus, feed, counts, seed=0, tokens=100, skip_bad=False)
    assert drawn.rows >= 100 > drawn.rows - drawn.items[-1].length
    assert counts.counts.sum() == drawn.rows


def test_sites_come_in_the_order_of_the_model(found):
    wanted = ("embed", "resid.1", "embed.weight")
    assert select_sites(found, ["resid.1", "embed"], False) == wanted
    assert select_sites(found, None, True)[-1] == "pooled"
    assert "pooled" not in select_sites(found, ["resid"], True)
    assert select_sites(found, ["pooled"], True) == ("pooled",)
    assert slug_of(select_sites, found, ["pooled"], False) == "pooling"


def test_pooling_is_the_models_own_unless_an_option_says_more(found):
    assert pooling_for(found, None) is None
    assert pooling_for(found, "last").mode == "last"


def test_only_pooled_vectors_can_be_cut(found):
    assert select_sites(found, ["pooled"], True, 3) == ("pooled",)
    assert slug_of(select_sites, found, ["resid.0"], True, 3) == "pooling"


def test_turns_are_never_more_than_the_sites(found, monkeypatch):
    monkeypatch.setenv("ISOSCOPE_MEMORY", "1000")
    said = []
    sites = ("embed", "resid.0", "embed.weight")
    assert turns_for(found, sites, None, said.append) == 2
    assert said[0].endswith("done in 2 turns")
    assert turns_for(found, ("embed",), 10**9, said.append) == 1


def test_models_that_read_or_write_text_have_tokens(found):
    assert has_tokens(found)
    listens = SimpleNamespace(takes="sound")
    assert has_tokens(SimpleNamespace(loaded=listens, last="dec"))
    assert not has_tokens(SimpleNamespace(loaded=listens, last=""))
