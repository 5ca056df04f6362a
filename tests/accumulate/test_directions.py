"""Sums of unit vectors, about zero and about a centre, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.accumulate import CentredDirections, Directions, merged
from isoscope.accumulate.directions import contributions, cosine_over_pairs
from isoscope.errors import MergeError, TooFewRowsError

WIDTH = 3
values = st.integers(-16, 16).map(lambda i: i / 8)


@st.composite
def clouds(draw):
    lengths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=45))
    rows = draw(arrays(np.float64, (sum(lengths), WIDTH), elements=values, fill=st.nothing()))
    return rows, lengths


def by_definition(rows, lengths):
    """All sums over the whole, document by document."""
    total, energy = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    own, pairs, nonzero = 0.0, 0, 0
    for document in np.split(rows.astype(np.float64), np.cumsum(lengths)[:-1]):
        norms = [np.sqrt(row @ row) for row in document]
        units = [row / norm for row, norm in zip(document, norms, strict=True) if norm]
        here = sum(units, np.zeros(rows.shape[1]))
        total, energy = total + here, energy + sum((u * u for u in units), 0 * here)
        own, pairs = own + here @ here, pairs + len(units) ** 2
        nonzero += len(units)
    return total, energy, own, pairs, nonzero


def assert_sums(summary, rows, lengths, atol=1e-10):
    total, energy, own, pairs, nonzero = by_definition(rows, lengths)
    np.testing.assert_allclose(summary.total, total, atol=atol)
    np.testing.assert_allclose(summary.energy, energy, atol=atol)
    assert summary.own.sum() == pytest.approx(own, abs=atol * 10)
    assert summary.pairs.sum() == pairs
    assert summary.count == nonzero


@given(cloud=clouds())
def test_the_sums_are_those_of_the_unit_vectors(make_block, feed, cloud):
    rows, lengths = cloud
    seen = feed(Directions(WIDTH), make_block(rows, lengths))
    if np.count_nonzero(rows.any(axis=1)) < 2:
        with pytest.raises(TooFewRowsError, match="directions needs at least 2 usable rows"):
            seen.finalize()
    else:
        assert_sums(seen.finalize(), rows, lengths)


@given(cloud=clouds())
def test_float32_rows_give_the_same_to_their_precision(make_block, feed, cloud):
    rows, lengths = cloud
    if np.count_nonzero(rows.any(axis=1)) >= 2:
        seen = feed(Directions(WIDTH), make_block(rows.astype(np.float32), lengths))
        assert_sums(seen.finalize(), rows, lengths, atol=2e-4)


def test_zero_rows_are_counted_and_have_no_direction(make_block, feed):
    rows = np.array([[1.0, 0], [0, 0], [0, 2], [0, 0]])
    summary = feed(Directions(2), make_block(rows, [2, 2])).finalize()
    assert summary.count == 2
    np.testing.assert_allclose(summary.total, [1, 1])


def test_a_document_of_zero_rows_is_no_group(make_block, feed):
    rows = np.array([[1.0, 0], [0, 0], [0, 2]])
    assert feed(Directions(2), make_block(rows, [1, 1, 1])).finalize().groups == 2


def test_only_zeros_are_too_few(make_block, feed):
    with pytest.raises(TooFewRowsError, match="at least 2 usable rows, got 0"):
        feed(Directions(2), make_block(np.zeros((5, 2)), [5])).finalize()


def test_tiny_and_huge_rows_count_as_much_as_others(make_block, feed):
    rows = np.array([[1e-25, 0], [0, 1e25], [3, 4]], dtype=np.float32)
    summary = feed(Directions(2), make_block(rows, [1, 1, 1])).finalize()
    np.testing.assert_allclose(summary.total, [1.6, 1.8], rtol=1e-6)
    assert summary.count == len(rows)


def test_without_a_group_the_rest_is_as_if_it_had_never_been_seen(make_block, feed):
    rows = np.random.default_rng(5).normal(size=(60, 4))
    whole = feed(Directions(4), make_block(rows, [5] * 12)).finalize()
    rest = feed(
        Directions(4), make_block(rows[:50], [5] * 10), make_block(rows[55:], [5], first=11)
    )
    keys = make_block(rows, [5] * 12).cells.keys
    gone = int(np.searchsorted(np.sort(keys), make_block(rows, [5] * 12).documents[50]))
    np.testing.assert_allclose(whole.without(gone).total, rest.finalize().total, atol=1e-12)
    assert whole.without(gone).count == 55 and whole.sizes.sum() == 60


def test_about_a_centre_the_sums_are_those_of_the_moved_rows(make_block, feed):
    rows = np.random.default_rng(6).normal(size=(60, 4)) + np.array([3, 0, 0, 1])
    centre = np.array([1.0, -1.0, 0.5, 0.0])
    seen = feed(CentredDirections(4, centre), make_block(rows, [5] * 12))
    assert_sums(seen.finalize(), rows - centre, [5] * 12)


def test_a_row_at_the_centre_has_no_direction(make_block, feed):
    rows = np.array([[1.0, 1], [2, 1], [1, 3]])
    summary = feed(CentredDirections(2, np.ones(2)), make_block(rows)).finalize()
    assert summary.count == 2
    np.testing.assert_allclose(summary.total, [1, 1])


@pytest.mark.parametrize("far", [1e2, 1e4, 1e6])
def test_a_far_centre_costs_no_digits_in_float32(make_block, feed, far):
    # The centre is no float32 number: taking only its float32 part would move every row.
    rows = (np.random.default_rng(7).normal(size=(2000, 8)) + far / 3).astype(np.float32)
    centre = rows.astype(np.float64).mean(axis=0)
    lengths = [20] * 100
    seen = feed(CentredDirections(8, centre), make_block(rows, lengths)).finalize()
    total, *_ = by_definition(rows.astype(np.float64) - centre, lengths)
    np.testing.assert_allclose(seen.total, total, atol=1e-3)  # of 2,000 unit vectors


def test_without_a_centre_it_is_zero():
    assert not CentredDirections(3).centre.any()


def test_different_centres_do_not_merge(make_block, feed):
    one, other = (feed(CentredDirections(2, np.full(2, c)), make_block(ROWS)) for c in (0, 1))
    with pytest.raises(MergeError, match="cannot merge CentredDirections"):
        one.merge(other)
    assert merged([one, one]).count == 6


ROWS = np.arange(6.0).reshape(3, 2) + 1


def test_a_saved_centre_comes_back(make_block, feed):
    centre = np.array([0.1, 1e4])
    seen = feed(CentredDirections(2, centre), make_block(ROWS))
    back = CentredDirections.from_state(seen.state(), width=2)
    assert (back.centre == centre).all()
    back.merge(seen)


def test_the_mean_cosine_and_its_parts_need_no_pairs():
    rows = np.random.default_rng(3).normal(size=(12, 5)) + 0.4
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = [(u, v) for i, u in enumerate(units) for k, v in enumerate(units) if i != k]
    total = units.sum(axis=0)
    known = np.mean([u @ v for u, v in pairs])
    assert cosine_over_pairs(total @ total, len(units)) == pytest.approx(known)
    parts = contributions(total, (units**2).sum(axis=0))
    np.testing.assert_allclose(parts, sum(u * v for u, v in pairs))
    both = cosine_over_pairs(np.array([total @ total, 4.0]), np.array([12.0, 2.0]))
    np.testing.assert_allclose(both, [known, 1.0])
