"""One vector a document, against the model called on each document alone."""

import numpy as np
import pytest
import torch

from isoscope.errors import UnknownNameError
from isoscope.lab.probe.one_dimension import best_dimension
from isoscope.lab.probe.worker import states_of as states_of_corpus
from isoscope.source.corpus import open_corpus
from isoscope.study.model import subject_of


def states_of(model, texts, **options):
    return states_of_corpus(subject_of(model), open_corpus(texts), **options)


def alone(subject, text):
    given = subject.loaded.tokenizer(text, return_tensors="pt")
    given.pop("token_type_ids", None)
    with torch.inference_mode():
        return subject.loaded.body(**given).last_hidden_state[0].numpy()


@pytest.mark.parametrize("at", ["first", "last", "mean"])
def test_states_are_those_of_each_document_alone(tiny, texts, at):
    subject = subject_of(tiny)
    found = states_of(subject, texts, at=at, batch=7)
    take = {"first": lambda s: s[0], "last": lambda s: s[-1], "mean": lambda s: s.mean(0)}[at]
    slow = np.array([take(alone(subject, text)) for text in texts])
    np.testing.assert_allclose(found.rows, slow, atol=2e-6)
    assert (found.site, found.at) == ("norm.out", at)


def test_encoders_are_read_at_cls_and_decoders_at_the_end(tiny, speaker, texts):
    assert states_of(tiny, texts[:3]).at == "first"
    decoder = subject_of(speaker)
    found = states_of(decoder, texts[:9])
    assert found.at == "last"
    slow = np.array([alone(decoder, text)[-1] for text in texts[:9]])
    np.testing.assert_allclose(found.rows, slow, atol=2e-6)


def test_documents_that_are_too_short_are_skipped(speaker, texts):
    documents = ["river", *texts[:4], "boats", *texts[4:8]]
    found = states_of(speaker, documents, site="resid.0")
    assert found.ordinals == [1, 2, 3, 4, 6, 7, 8, 9]
    assert len(found.rows) == 8


def test_unknown_sites_and_places_are_named(tiny, texts):
    with pytest.raises(UnknownNameError, match=r"no site is called 'resid\.7'"):
        states_of(tiny, texts, site="resid.7")
    with pytest.raises(UnknownNameError, match="no place of a state is called 'end'"):
        states_of(tiny, texts, at="end")


def test_progress_counts_documents(tiny, texts):
    ticks = []
    states_of(tiny, texts, batch=16, progress=ticks.append)
    assert ticks == [16, 32, 40]


def test_they_are_what_the_classifier_takes(tiny, texts):
    labels = [len(text.split()) > 15 for text in texts]
    found = states_of(tiny, texts, at="mean")
    rule = best_dimension(found.rows, labels)
    assert rule.train_accuracy > 0.6
    assert (rule.d, rule.n_train + rule.n_test) == (24, 40)
