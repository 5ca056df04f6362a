"""A run of the small model, a model that is loaded, and real ones."""

import pytest

from isoscope.study.model import subject_of


@pytest.fixture(scope="session")
def run(tiny_run):
    """Return the run folder of the small BERT over forty texts."""
    return tiny_run


@pytest.fixture
def speaking(speaker):
    """Return the small GPT-2, loaded."""
    return subject_of(speaker)
