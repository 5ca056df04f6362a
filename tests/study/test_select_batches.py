"""Documents as batches."""

import pytest

from isoscope.capture.feed import feed_for
from isoscope.errors import TooFewRowsError
from isoscope.source.corpus import open_corpus
from isoscope.study.model import subject_of
from isoscope.study.selection import batches_of, prepare_documents


@pytest.fixture(scope="module")
def feed(tiny):
    return feed_for(subject_of(tiny).loaded, length=16)


def test_documents_keep_their_order_or_have_that_of_a_seed(feed, texts):
    corpus = open_corpus(texts)
    plain = [ordinal for ordinal, _ in prepare_documents(corpus, feed)]
    assert plain == list(range(len(texts)))
    drawn = [ordinal for ordinal, _ in prepare_documents(corpus, feed, documents=5, seed=1)]
    assert drawn == corpus.order(1)[:5].tolist()


def test_batches_hold_every_document_once(feed, texts):
    ready = [each for _, each in prepare_documents(open_corpus(texts), feed, documents=7)]
    batches = list(batches_of(ready, feed, 3))
    assert [len(each.documents) for each in batches] == [3, 3, 1]
    assert [name for each in batches for name in each.documents] == [e.id for e in ready]


def test_a_open_corpus_nothing_but_short_documents_says_so(speaker):
    feed = feed_for(subject_of(speaker).loaded, length=16)
    with pytest.raises(TooFewRowsError, match="at least two tokens") as raised:
        prepare_documents(open_corpus(["river", "boats"]), feed)
    assert raised.value.slug == "corpus-short"
