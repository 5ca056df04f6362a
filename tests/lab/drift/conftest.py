"""One small experiment on post-norm and pre-norm blocks, run once."""

import pytest

import isoscope as iso

OPTIONS = {"arch": ["bert", "gpt2", "vit"], "width": 64, "heads": 4, "tokens": 48, "std": 0.07}
NORMS = (0.0, 4.0, 16.0, 64.0)


@pytest.fixture(scope="session")
def drift_run(tmp_path_factory):
    """Return the folder and the results of a run over 20 initialisations."""
    folder = tmp_path_factory.mktemp("drift") / "small"
    found = iso.drift(**OPTIONS, norms=NORMS, initialisations=20, output=folder)
    return folder, found
