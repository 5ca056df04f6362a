"""Local intrinsic dimension against distances sorted one by one, and surfaces of known one."""

from types import SimpleNamespace

import numpy as np
import pytest

from isoscope.measures.lid import lid

NAME = "lid"


def slow(rows, k=100):
    """Return the mean of -k / sum log(r_j / r_k), as Cai et al. compute it."""
    found = []
    for row in rows:
        near = np.sort(np.linalg.norm(rows - row, axis=1))[1 : k + 1]
        found.append(-k / np.log(near / near[-1]).sum())
    return np.mean(found)


@pytest.mark.parametrize("d", [2, 9])
def test_it_is_its_definition(value, d):
    rows = np.random.default_rng(d).normal(size=(400, d)) + 3
    assert value(rows, NAME) == pytest.approx(slow(rows), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_flat_surface_has_its_own_dimension(value, d):
    rng = np.random.default_rng(d)
    rows = rng.uniform(size=(2000, d)) @ np.linalg.qr(rng.normal(size=(20, d)))[0].T
    # a hundred neighbours of 2,000 rows feel the edge
    assert value(rows, NAME) == pytest.approx(d, rel=0.12)


def test_it_is_not_in_the_default_set_and_has_an_interval(measured):
    rows = np.random.default_rng(1).normal(size=(500, 5))
    reading = measured(rows, NAME)[NAME]
    assert reading.low < reading.value < reading.high
    from isoscope.study.measure_choice import measure_names

    assert NAME not in measure_names(None)
    assert NAME in measure_names(None, all=True)


def test_few_rows_are_too_few():
    from isoscope.api import measure
    from isoscope.errors import TooFewRowsError

    with pytest.raises(TooFewRowsError, match="at least 102 distinct rows, got 90"):
        measure(np.random.default_rng(0).normal(size=(90, 4)), measures=[NAME])


def test_equal_distances_have_no_dimension():
    from isoscope.errors import UndefinedError

    with pytest.raises(UndefinedError, match="neighbours at different distances"):
        lid(SimpleNamespace(first=lambda k: np.ones((4, k))))
