"""A nursery of a few thousand parameters, trained for three steps."""

import sys
from pathlib import Path

import pytest

import isoscope as iso

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return the folder of a training of three steps on bytes."""
    from nursery_texts import TEXTS, TINY

    folder = tmp_path_factory.mktemp("nursery") / "small"
    iso.nursery_train(TEXTS, **TINY, steps=3, checkpoints=3, output=folder)
    return folder
