"""What a feed asks of documents and models is what sources and loaders give."""

from dataclasses import fields

from isoscope.capture.feed.given import Given, Loaded
from isoscope.capture.model.loaded import Loaded as Real
from isoscope.source.corpus import Document


def names(protocol):
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_a_document_of_a_corpus_has_all_that_is_asked_for():
    assert names(Given) <= {field.name for field in fields(Document)}


def test_a_loaded_model_has_all_that_is_asked_for():
    assert names(Loaded) <= {field.name for field in fields(Real)}
