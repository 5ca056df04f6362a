"""A run of the small model, a model that is loaded, and runs as a page sees them."""

import importlib.util
from pathlib import Path

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


@pytest.fixture(scope="session")
def exhibits():
    """Return the module of made-up runs."""
    place = Path(__file__).parents[1] / "display" / "exhibits.py"
    spec = importlib.util.spec_from_file_location("exhibits", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def demo(exhibits):
    """Return one run with something for every section."""
    return exhibits.exhibit(bands=exhibits.BANDS)


@pytest.fixture(scope="session")
def surveyed(tiny_run):
    """Return a real survey with tokens and documents, as a page sees it."""
    from isoscope.exhibit.exhibit import exhibits as shown

    (exhibit,) = shown(tiny_run)
    return exhibit
