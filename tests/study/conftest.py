"""Chunks to run over, and what comes out of a run in a form that compares."""

import numpy as np
import pytest

from isoscope.study.lanes import run
from isoscope.study.reading import kinds_for
from isoscope.types import Chunk

PLACE = ("rows", "all")


def chunked(rows, size, documents=None, *, source="a", place="a.npy"):
    """Consecutive chunks of at most `size` rows."""
    names = None if documents is None else np.asarray(documents)
    return [
        Chunk(
            rows[i : i + size],
            source,
            i,
            documents=None if names is None else names[i : i + size],
            place=place,
        )
        for i in range(0, len(rows), size)
    ]


@pytest.fixture(scope="session")
def chunks():
    return chunked


@pytest.fixture(scope="session")
def survey():
    """A survey of rows, by the accumulators that some measures need."""

    def made(rows, names, documents=None, size=100, **how):
        return run(chunked(rows, size, documents), PLACE, kinds_for(names), **how)[0]

    return made


@pytest.fixture(scope="session")
def cloud():
    def rows(n=600, d=6, *, mean=1.0, seed=3):
        spread = np.arange(1, d + 1) ** -0.5
        return np.random.default_rng(seed).normal(size=(n, d)) * spread + mean

    return rows


@pytest.fixture(scope="session")
def assert_same():
    """Two surveys hold the same arrays: to the last bit, or within a tolerance."""

    def check(left, right, rtol=0.0):
        ours, theirs = left.to_state(), right.to_state()
        assert ours[0] == theirs[0]
        assert ours[1].keys() == theirs[1].keys()
        for name, array in ours[1].items():
            size = float(np.abs(array[np.isfinite(array)]).max(initial=0)) if array.size else 0
            np.testing.assert_allclose(
                theirs[1][name], array, rtol=rtol, atol=rtol * size, err_msg=name
            )

    return check
