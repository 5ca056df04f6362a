"""Documents as batches."""

import pytest

from isoscope.capture.feed import feed_for
from isoscope.errors import TooFewRowsError
from isoscope.lab.batches import batched, corpus_of, prepared_of
from isoscope.study.model import subject_of


@pytest.fixture(scope="module")
def feed(tiny):
    return feed_for(subject_of(tiny).loaded, length=16)


def test_a_corpus_that_is_open_is_taken_as_it_is(texts):
    corpus = corpus_of(texts)
    assert corpus_of(corpus) is corpus
    assert len(corpus) == len(texts)


def test_documents_keep_their_order_or_have_that_of_a_seed(feed, texts):
    corpus = corpus_of(texts)
    plain = [ordinal for ordinal, _ in prepared_of(corpus, feed)]
    assert plain == list(range(len(texts)))
    drawn = [ordinal for ordinal, _ in prepared_of(corpus, feed, documents=5, seed=1)]
    assert drawn == corpus.order(1)[:5].tolist()


def test_batches_hold_every_document_once(feed, texts):
    ready = [each for _, each in prepared_of(corpus_of(texts), feed, documents=7)]
    batches = list(batched(ready, feed, 3))
    assert [len(each.documents) for each in batches] == [3, 3, 1]
    assert [name for each in batches for name in each.documents] == [e.id for e in ready]


def test_a_corpus_of_nothing_but_short_documents_says_so(speaker):
    feed = feed_for(subject_of(speaker).loaded, length=16)
    with pytest.raises(TooFewRowsError, match="at least two tokens") as raised:
        prepared_of(corpus_of(["river", "boats"]), feed)
    assert raised.value.slug == "corpus-short"
