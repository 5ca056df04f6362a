"""The model of a verb: loaded where it is named, taken as it is where it is loaded."""

import pytest

from isoscope.errors import IsoscopeError
from isoscope.study.model import subject_of
from isoscope.verbs.subject import subject


def test_a_path_is_loaded_and_says_so_to_nobody(tiny):
    said = []
    found = subject(tiny, say=said.append)
    assert found.loaded.name == tiny.name
    assert "resid.0" in found.sites.names
    assert said == []


def test_what_is_loaded_is_taken_as_it_is(tiny):
    found = subject(tiny)
    assert subject(found).loaded is found.loaded
    assert subject(found.loaded).loaded is found.loaded
    ready = subject_of(tiny)
    assert subject(ready) is ready


def test_what_is_no_model_is_a_mistake_of_the_program():
    with pytest.raises(TypeError, match="expected a path, a hub name or a loaded model"):
        subject(3)


def test_a_path_that_is_not_there_is_one_error():
    with pytest.raises(IsoscopeError, match="no such folder") as raised:
        subject("./nothing")
    assert raised.value.slug == "model-not-found"
