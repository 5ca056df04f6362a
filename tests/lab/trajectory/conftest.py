"""A corpus, and the hub on loopback that the tests of models have."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def _module(path):
    spec = importlib.util.spec_from_file_location("hub_on_loopback", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hub = _module(HERE.parents[1] / "capture" / "model" / "conftest.py").hub


@pytest.fixture(scope="session")
def corpus(texts, tmp_path_factory):
    """Return a file of forty documents."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(texts))
    return path


@pytest.fixture(scope="session")
def followed(checkpoints, corpus, made_once):
    """Return the run of all twelve checkpoints."""
    import isoscope as iso

    def follow(folder):
        sites = "resid.1,norm.out,embed.weight,unembed.weight"
        iso.trajectory(checkpoints, corpus, sites=sites, threads=1, output=folder / "series")

    return made_once("followed", follow) / "series"
