"""The one-dimension classifier against every dimension, threshold and direction tried."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import ConfigError, RowError, TooFewRowsError, UndefinedError
from isoscope.lab.probe import one_dimension
from isoscope.lab.probe.one_dimension import best_dimension, best_threshold, published_search


def brute_force(rows, marks):
    """Return how many rows the best rule gets right, trying all of them."""
    best = 0
    for column in rows.T:
        values = sorted(set(column.tolist()))
        cuts = [-np.inf, *[(a + b) / 2 for a, b in pairwise(values)]]
        for cut in cuts:
            for up in (True, False):
                best = max(best, int((((column > cut) == up) == marks).sum()))
    return best


@given(st.integers(2, 25), st.integers(1, 5), st.integers(0, 10_000), st.booleans())
def test_the_search_is_as_good_as_brute_force(n, d, seed, ties):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, (n, d)).astype(float) if ties else rng.normal(size=(n, d))
    marks = rng.random(n) < 0.4
    dimension, threshold, up, right = best_threshold(rows, marks)
    assert right == brute_force(rows, marks)
    assert right == int((((rows[:, dimension] > threshold) == up) == marks).sum())


def test_a_search_in_portions_finds_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    rows, marks = rng.normal(size=(60, 17)), rng.random(60) < 0.5
    whole = best_threshold(rows, marks)
    monkeypatch.setattr(one_dimension, "_CELLS", 120)
    assert best_threshold(rows, marks) == whole


def test_a_threshold_between_two_neighbouring_floats_still_parts_them():
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2.0))
    rows = np.array([[low], [high]] * 4, dtype=np.float32)
    marks = np.array([False, True] * 4)
    _, threshold, up, right = best_threshold(rows, marks)
    assert right == 8
    assert (((rows[:, 0] > threshold) == up) == marks).all()


def labelled(n=400, seed=0, gap=3.0):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.5, "good", "bad")
    rows = rng.normal(size=(n, 20)).astype(np.float32)
    rows[:, 13] -= gap * (labels == "good")
    return rows, labels


def test_the_dimension_that_tells_is_found_and_tried_on_unseen_rows():
    rows, labels = labelled()
    found = best_dimension(rows, labels)
    assert found.dimension == 13
    assert (found.below, found.above) == ("good", "bad")
    assert found.threshold == pytest.approx(-1.5, abs=0.7)
    assert found.low < found.accuracy < found.high
    assert 0.85 < found.accuracy < 0.98
    assert found.n_train + found.n_test == 400
    fresh, truth = labelled(seed=9)
    assert (found.predict(fresh) == truth).mean() == pytest.approx(found.accuracy, abs=0.06)
    assert found.to_dict()["above"] == "bad"


def test_noise_is_no_better_than_the_majority_on_unseen_rows():
    """The best of 300 dimensions looks good where it was chosen, and nowhere else."""
    rng = np.random.default_rng(2)
    rows, labels = rng.normal(size=(200, 300)), rng.random(200) < 0.5
    found = best_dimension(rows, labels)
    assert found.train_accuracy > 0.62
    assert found.accuracy < 0.62
    assert found.low < 0.5 < found.high


def test_the_seed_decides_the_split_and_nothing_else_does():
    rows, labels = labelled()
    assert best_dimension(rows, labels, seed=3) == best_dimension(rows, labels, seed=3)
    splits = {best_dimension(rows, labels, seed=seed).accuracy for seed in range(6)}
    assert len(splits) > 1


def test_both_labels_are_on_both_sides_of_the_split():
    labels = np.array([1] * 8 + [0] * 92)
    found = best_dimension(np.random.default_rng(0).normal(size=(100, 3)), labels, test=0.25)
    assert found.n_test == 25
    assert found.majority == pytest.approx(23 / 25)


def test_as_published_takes_the_widest_dimension_and_the_grid():
    rows, labels = labelled()
    rows[:, 4] *= 40
    found = best_dimension(rows, labels, as_published=True)
    assert found.dimension == 4
    assert found.as_published
    marks = labels == "good"
    values = rows[:, 4].astype(float)
    tried = [
        (((values > values.mean() + step) == up) == marks).sum()
        for step in np.linspace(-50, 50, 201)
        for up in (True, False)
    ]
    assert published_search(rows, marks)[3] == max(tried)


@pytest.mark.parametrize(
    ("rows", "labels", "kind", "slug"),
    [
        (np.ones((10, 2)), [0, 1] * 4, ConfigError, "labels-mismatch"),
        (np.ones((8, 2)), [[0, 1]] * 8, ConfigError, "labels-mismatch"),
        (np.ones((30, 2)), [0, 1, 2] * 10, UndefinedError, "labels-binary"),
        (np.ones((30, 2)), [0] * 30, UndefinedError, "labels-binary"),
        (np.ones((30, 2)), [0] * 27 + [1] * 3, TooFewRowsError, "labels-few"),
        (np.full((30, 2), np.nan), [0, 1] * 15, RowError, "row-not-finite"),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_one_line(rows, labels, kind, slug):
    with pytest.raises(kind) as raised:
        best_dimension(rows, labels)
    assert raised.value.slug == slug
    assert raised.value.hint
    assert "\n" not in raised.value.problem


def test_a_share_that_leaves_no_rows_is_refused():
    rows, labels = labelled(40)
    with pytest.raises(ConfigError, match=r"more than 0 and less than 1 as test, got 1\.0"):
        best_dimension(rows, labels, test=1.0)
