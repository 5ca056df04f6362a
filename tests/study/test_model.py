"""The model that a spec names: loaded where it is a path, taken as it is where it is loaded."""

import pytest

from isoscope.errors import IsoscopeError
from isoscope.study.model import (
    CorpusSpec,
    ModelSites,
    ModelSpec,
    load_model,
    model_content,
    open_documents,
    open_model,
    subject_of,
)


def test_a_folder_is_loaded_and_a_subject_is_taken_as_it_is(tiny):
    subject = subject_of(tiny)
    assert isinstance(subject, ModelSites)
    assert "norm.out" in subject.sites.names
    assert subject.last == ""
    assert subject.site("norm", "out") == "norm.out"
    assert subject_of(subject) is subject


def test_what_was_opened_elsewhere_is_not_loaded_again(tiny):
    found = load_model(tiny)
    subject = subject_of(found)
    assert subject.loaded is found.loaded
    assert subject.sites is found.sites
    assert subject_of(found.loaded).loaded is found.loaded
    assert open_model(ModelSpec(model=None), live=found) is found


def test_a_path_is_loaded_and_says_nothing_about_it(tiny):
    said = []
    found = open_model(ModelSpec(model=str(tiny)), say=said.append)
    assert found.loaded.name == tiny.name
    assert said == []


def test_what_is_not_a_model_is_refused():
    with pytest.raises(TypeError, match="a path, a hub name or a loaded model"):
        subject_of(3)


def test_a_path_that_is_not_there_is_one_error():
    with pytest.raises(IsoscopeError, match="no such folder") as raised:
        open_model(ModelSpec(model="./nothing"))
    assert raised.value.slug == "model-not-found"


def test_another_precision_or_other_weights_are_other_content(tiny):
    plain = model_content(load_model(tiny))
    narrow = model_content(load_model(tiny, dtype="bfloat16"))
    fresh = model_content(load_model(tiny, untrained=True, seed=3))
    again = model_content(load_model(tiny, untrained=True, seed=4))
    assert {key for key in plain if plain[key] != narrow[key]} == {"dtype"}
    assert plain != fresh != again
    assert model_content(load_model(tiny)) == plain


def test_a_corpus_is_opened_from_its_path_or_taken_as_it_is(texts, tmp_path):
    (tmp_path / "c.txt").write_text("\n".join(texts))
    named = open_documents(CorpusSpec(corpus=str(tmp_path / "c.txt")))
    given = open_documents(CorpusSpec(), texts)
    assert len(named) == len(given) == len(texts)
    assert open_documents(CorpusSpec(), named) is named
    assert len(open_documents(CorpusSpec())) > len(texts)  # the bundled text
