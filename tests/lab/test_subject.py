"""The model an experiment is about."""

import pytest

from isoscope import lab
from isoscope.study.model import Subject, subject_of
from isoscope.verbs.model import opened


def test_a_folder_is_loaded_and_a_subject_is_taken_as_it_is(tiny):
    subject = subject_of(tiny)
    assert isinstance(subject, Subject)
    assert "norm.out" in subject.sites.names
    assert subject.last == ""
    assert subject_of(subject) is subject


def test_what_was_opened_elsewhere_is_not_loaded_again(tiny):
    found = opened(tiny)
    subject = subject_of(found)
    assert subject.loaded is found.loaded
    assert subject.sites is found.sites
    assert subject_of(found.loaded).loaded is found.loaded


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="a path, a hub name or a loaded model"):
        subject_of(3)


def test_every_name_of_the_lab_is_something_to_call():
    assert all(callable(getattr(lab, name)) for name in lab.__all__)
    with pytest.raises(AttributeError, match="no attribute 'final_norms_of'"):
        _ = lab.final_norms_of
