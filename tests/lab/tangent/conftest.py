"""A corpus for gradients, and a run of a small GPT-2."""

import pytest


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("tangent-corpus") / "corpus.txt"
    path.write_text("\n".join([*texts, *(text[::-1] for text in texts)]))
    return path


@pytest.fixture(scope="session")
def followed_model(speaker, corpus, tmp_path_factory):
    """Return the run of one site of a small GPT-2."""
    import isoscope as iso

    path = tmp_path_factory.mktemp("one-site") / "run"
    options = {"rank": 3, "controls": 20, "threads": 1, "batch": 4}
    iso.tangent(speaker, corpus, sites=["grad.1"], output=path, **options)
    return path
