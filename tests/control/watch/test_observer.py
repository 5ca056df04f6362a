"""Glances: the numbers of the measures of the same names, from sums alone."""

import numpy as np
import pytest
import torch

from isoscope.api import measure
from isoscope.control.watch.glance import GLANCES, Glance
from isoscope.control.world import Join
from isoscope.errors import UnknownNameError
from isoscope.measures import MEASURES


def cloud(seed, documents=60, tokens=12, d=24):
    rng = np.random.default_rng(seed)
    scales = np.arange(1, d + 1) ** -0.7
    shared = rng.normal(size=(documents, 1, d))
    rows = (0.6 * shared + rng.normal(size=(documents, tokens, d))) * scales + 0.2
    return rows.reshape(-1, d).astype(np.float32), np.repeat(np.arange(documents), tokens)


def seen(rows, numbers, parts=1):
    glance = Glance()
    for places in np.array_split(np.arange(len(rows)), parts):
        glance.add(torch.from_numpy(rows[places]), torch.from_numpy(numbers[places]))
    return glance.whole(torch.zeros(0, rows.shape[1]), Join())


@pytest.mark.parametrize("name", ["mean-cosine", "effective-rank", "isoscore", "top-share"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_measure_of_that_name(name, seed):
    rows, numbers = cloud(seed)
    (known,) = measure(rows, measures=[name])
    assert GLANCES[name](seen(rows, numbers)) == pytest.approx(known.value, rel=1e-5)
    assert name in MEASURES


def test_debiased_is_by_halves_of_the_documents():
    rows, numbers = cloud(3)
    halves = [np.cov(rows[numbers % 2 == half].astype(np.float64).T) for half in (0, 1)]
    a, b = halves
    ratio = np.trace(a) * np.trace(b) / (a * b).sum()
    found = GLANCES["isoscore-debiased"](seen(rows, numbers))
    assert found == pytest.approx((ratio - 1) / 23, rel=1e-5)


def test_a_white_cloud_of_few_documents_reads_one_debiased_and_less_plain():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        rows = rng.normal(size=(100, 64)).astype(np.float32)
        whole = seen(rows, np.arange(100))
        found.append([GLANCES[name](whole) for name in ("isoscore", "isoscore-debiased")])
    plain, debiased = np.mean(found, axis=0)
    assert plain < 0.65 and debiased == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("parts", [2, 7])
def test_batches_add_up(parts):
    rows, numbers = cloud(1)
    one, many = seen(rows, numbers), seen(rows, numbers, parts)
    for name in GLANCES:
        assert GLANCES[name](many) == pytest.approx(GLANCES[name](one), rel=1e-5)


def test_dimensions_in_which_rows_hardly_differ_are_dead():
    rows, numbers = cloud(1)
    rows[:, :6] = 0.25
    assert GLANCES["dead-dimensions"](seen(rows, numbers)) == 6 / 24


@pytest.mark.parametrize(
    ("rows", "undefined"),
    [
        (np.zeros((0, 5), dtype=np.float32), set(GLANCES)),
        (np.ones((1, 5), dtype=np.float32), set(GLANCES)),
        (
            np.ones((8, 5), dtype=np.float32),
            {"effective-rank", "isoscore", "isoscore-debiased", "top-share"},
        ),
        (np.full((8, 5), np.nan, dtype=np.float32), set(GLANCES)),
    ],
)
def test_what_is_undefined_is_left_out_and_never_a_number(rows, undefined):
    whole = seen(rows, np.arange(len(rows)))
    assert {name for name in GLANCES if GLANCES[name](whole) is None} == undefined


def test_a_name_that_is_not_there_is_told():
    with pytest.raises(UnknownNameError, match="no watched measure"):
        GLANCES["twonn"]
