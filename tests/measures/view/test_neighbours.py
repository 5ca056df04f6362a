"""Nearest neighbours against brute force: near copies, left-out groups, extreme scales."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.hashing import named_documents
from isoscope.measures.view import Neighbours
from isoscope.measures.view.neighbours import (
    ENOUGH,
    KEPT,
    LEAST,
    _symmetric,
    equally_far,
    nearest,
)


def brute(rows, k, of=None):
    """Return the distances of rows to their k nearest others, in float64, sorted."""
    rows = np.asarray(rows, dtype=np.float64)
    found = []
    for i in range(len(rows)) if of is None else of:
        gaps = np.delete(rows, i, axis=0) - rows[i]
        found.append(np.sort(np.sqrt((gaps * gaps).sum(axis=1)))[:k])
    return np.array(found)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(3, 60),
    d=st.integers(1, 6),
    k=st.integers(1, 45),
    narrow=st.booleans(),
)
def test_distances_are_those_of_brute_force(seed, n, d, k, narrow):
    rows = np.random.default_rng(seed).normal(size=(n, d)) + 3
    rows = rows.astype(np.float32) if narrow else rows
    k = min(k, n - 1)
    which, distances = nearest(rows, k)
    np.testing.assert_allclose(distances, brute(rows, k), rtol=1e-5 if narrow else 1e-9)
    gaps = rows[which].astype(np.float64) - rows[:, None].astype(np.float64)
    np.testing.assert_allclose(
        np.linalg.norm(gaps, axis=2), distances, rtol=1e-5 if narrow else 1e-9
    )
    assert all(len(set(row)) == k and i not in row for i, row in enumerate(which))


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_near_copies_are_distinguished_in_float32(gap):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 16)) * 10
    rows[::10] = rows[1::10] + gap * rng.normal(size=(30, 16))
    rows = rows.astype(np.float32)  # of rows of length 40 the product loses gaps of 1e-2
    found, exact = nearest(rows, 20)[1], brute(rows, 20)
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    # near ones are worked out from differences of the rows as they were given
    np.testing.assert_allclose(found[::10, 0], exact[::10, 0], rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_clusters_smaller_than_what_is_kept_are_found_whole(shift):
    rng = np.random.default_rng(2)
    centres = np.repeat(rng.normal(size=(20, 8)) * 10, 30, axis=0)
    rows = (centres + 1e-2 * rng.normal(size=(600, 8)) + shift).astype(np.float32)
    found = nearest(rows, KEPT)[1][:, :20]
    np.testing.assert_allclose(found, brute(rows, 20), rtol=1e-12)


def test_clusters_larger_than_what_is_kept_are_found_too():
    rng = np.random.default_rng(3)
    centres = np.repeat(rng.normal(size=(10, 8)) * 10, 100, axis=0)
    rows = (centres + 1e-3 * rng.normal(size=(1000, 8))).astype(np.float32)
    np.testing.assert_allclose(nearest(rows, KEPT)[1][:, :2], brute(rows, 2), rtol=1e-3)


def test_some_rows_may_be_requested_among_all():
    rows = np.random.default_rng(3).normal(size=(700, 3))  # more than a chunk of them
    of = np.arange(0, 700, 13)
    np.testing.assert_allclose(nearest(rows, 5, of=of)[1], brute(rows, 5, of), rtol=1e-9)
    np.testing.assert_allclose(nearest(rows, 5)[1], brute(rows, 5), rtol=1e-9)


@pytest.mark.parametrize("power", [-90, 90])
def test_scale_does_not_matter_down_to_the_last_bit(power):
    rows = np.random.default_rng(4).normal(size=(60, 4)).astype(np.float32)
    which, distances = nearest(rows, 5)
    moved, scaled = nearest(np.ldexp(rows, power), 5)
    np.testing.assert_array_equal(moved, which)
    np.testing.assert_array_equal(scaled, np.ldexp(distances, power))


def test_one_giant_does_not_make_the_others_copies():
    rows = np.random.default_rng(5).normal(size=(30, 4)).astype(np.float32)
    rows[0] = 1e15
    np.testing.assert_allclose(nearest(rows, KEPT - 20)[1], brute(rows, 20), rtol=1e-6)


@pytest.mark.parametrize("documents", [30, 100])  # a group each, and 32 groups
@pytest.mark.parametrize("k", [2, 20])
def test_without_a_group_they_are_the_nearest_of_the_others(viewed, documents, k):
    rng = np.random.default_rng(6)
    names = np.repeat(np.arange(documents), 2).astype(str)
    rows = rng.normal(size=(len(names), 3))
    seen = viewed(Neighbours, rows, names)
    for group in range(0, seen.groups, 7):
        left = seen.without(group)
        others = seen.rows[seen.cells != group]
        assert left.count == len(others)
        np.testing.assert_allclose(left.first(k), brute(others, k), rtol=1e-9)


def test_a_document_of_more_neighbours_than_are_kept_is_requested_again(viewed):
    rng = np.random.default_rng(7)
    names = np.r_[np.zeros(60, dtype=int), np.arange(1, 41)].astype(str)
    rows = rng.normal(size=(100, 2))
    rows[:60] *= 0.1  # everyone's nearest are of that document
    seen = viewed(Neighbours, rows, names)
    big = int(np.argmax(seen.sizes))
    left = seen.without(big)
    usable = (seen.cells[seen.which[seen.cells != big]] != big).sum(axis=1)
    assert usable.min() < 20
    np.testing.assert_allclose(
        left.first(20), brute(seen.rows[seen.cells != big], 20), rtol=1e-9
    )


def test_a_group_that_leaves_too_few_rows_cannot_be_excluded(viewed):
    rows = np.random.default_rng(8).normal(size=(30, 2))
    names = np.r_[np.zeros(20, dtype=int), np.arange(1, 11)].astype(str)
    seen = viewed(Neighbours, rows, names)
    left = seen.without(int(np.argmax(seen.sizes)))
    with pytest.raises(TooFewRowsError, match="20 neighbours need at least 21 distinct rows"):
        left.first(20)
    assert left.first(2).shape == (10, 2)


def test_it_knows_its_rows_documents_and_groups(viewed):
    rows = np.random.default_rng(9).normal(size=(40, 2))
    rows[7] = rows[3]  # a copy, left out
    names = np.repeat(np.arange(20), 2).astype(str)
    seen = viewed(Neighbours, rows, names)
    assert (seen.count, seen.documents, seen.groups) == (39, 20, 20)
    assert sorted(seen.sizes) == [1.0] + [2.0] * 19
    assert seen.distances.shape == (39, 38)
    keys = np.unique(named_documents(names))
    of_either = np.searchsorted(keys, named_documents(names)[[3, 7]])
    assert int(np.argmin(seen.sizes)) in of_either


@pytest.mark.parametrize("documents", [30, 128, ENOUGH - 1, ENOUGH, ENOUGH + 1, 400])
def test_documents_have_as_few_rows_as_make_enough(viewed, documents):
    rows = np.random.default_rng(10).normal(size=(3 * documents, 2))
    names = np.repeat(np.arange(documents), 3).astype(str)
    most = min(3 * documents, max(documents, ENOUGH))
    assert viewed(Neighbours, rows, names).count == most
    assert viewed(Neighbours, rows).count == 3 * documents


def test_too_few_distinct_rows_have_no_view(viewed):
    rows = np.random.default_rng(11).normal(size=(LEAST - 1, 2))
    with pytest.raises(TooFewRowsError, match="at least 22 distinct rows, got 21"):
        viewed(Neighbours, np.concatenate([rows, rows]))


def test_rows_equally_far_have_an_error_of_their_own():
    assert isinstance(equally_far(), UndefinedError)
    assert "neighbours at different distances" in equally_far().problem


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 256, 700])
def test_half_of_the_products_give_all_of_them(dtype, n):
    rows = np.random.default_rng(9).normal(size=(n, 33)).astype(dtype)
    found = _symmetric(rows)
    np.testing.assert_allclose(found, rows @ rows.T, rtol=1e-5, atol=1e-5)
    assert np.array_equal(found, found.T) and found.dtype == dtype


def test_rows_too_many_to_keep_all_products_have_the_same_neighbours(monkeypatch):
    rows = np.random.default_rng(10).normal(size=(600, 12)).astype(np.float32)
    which, distances = nearest(rows, 20)
    monkeypatch.setattr("isoscope.measures.view.neighbours._MOST", 100)
    again, same = nearest(rows, 20)
    assert np.array_equal(which, again)
    np.testing.assert_allclose(distances, same, rtol=1e-6)
