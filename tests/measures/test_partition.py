"""partition against the definition: the partition function along every principal axis."""

from importlib import import_module
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.measures.partition import DRAWS

PARTS = ("partition", "partition-log", "partition-reference")


def along_axes(rows):
    """Return Z(c) for every eigenvector c of X'X, and for its opposite."""
    axes = np.linalg.eigh(rows.T @ rows)[1].T
    plus = [sum(np.exp(row @ axis) for row in rows) for axis in axes]
    minus = [sum(np.exp(-(row @ axis)) for row in rows) for axis in axes]
    return np.array(plus), np.array(minus)


def by_definition(rows):
    both = np.concatenate(along_axes(rows))
    return min(both) / max(both)


def random_cloud(norms, d, rng):
    """Return rows of these norms in directions drawn at random."""
    rows = rng.normal(size=(len(norms), d))
    return rows * (norms / np.linalg.norm(rows, axis=1))[:, None]


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), d=st.integers(1, 6))
def test_equals_the_smallest_over_the_largest_over_both_signs(measured, seed, n, d):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * rng.uniform(0.2, 2, size=d) + 0.5
    found = measured(rows, "partition")
    assert found["partition"].value == pytest.approx(by_definition(rows), rel=1e-9)
    assert found["partition-log"].value == pytest.approx(np.log(by_definition(rows)), abs=1e-9)


def test_as_published_one_sign_of_each_axis_is_taken(value):
    rows = np.random.default_rng(1).normal(size=(60, 3)) + 0.4
    plus, minus = along_axes(rows)
    choices = [
        np.where(signs, plus, minus) for signs in product((True, False), repeat=len(plus))
    ]
    possible = [min(chosen) / max(chosen) for chosen in choices]
    found = value(rows, "partition", as_published=True)
    assert min(abs(found / each - 1) for each in possible) < 1e-9
    assert value(rows, "partition") <= min(possible) * (1 + 1e-9)


def test_the_log_is_of_the_value_beside_it_also_as_published(measured):
    rows = np.random.default_rng(2).normal(size=(60, 3)) + 0.4
    for published in (False, True):
        found = measured(rows, "partition", as_published=published)
        assert found["partition-log"].value == pytest.approx(np.log(found["partition"].value))


def test_it_falls_as_the_same_cloud_grows(value):
    rows = np.random.default_rng(3).normal(size=(400, 8)) * np.arange(1, 9) ** -0.5
    sizes = [value(scale * rows, "partition") for scale in (0.5, 1.0, 2.0, 4.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 0.8 > 0.1 > sizes[3]


def test_the_reference_is_a_random_cloud_of_the_same_norms_about_its_own_axes(measured):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 10)) * np.linspace(0.1, 1.2, 10) + 0.3
    norms = np.linalg.norm(rows, axis=1)
    drawn = [by_definition(random_cloud(norms, 10, rng)) for _ in range(40)]
    fixed = []  # axes that the cloud does not choose lie less far apart
    for _ in range(40):
        cloud = random_cloud(norms, 10, rng)
        both = np.exp(np.concatenate([cloud, -cloud], axis=1)).sum(axis=0)
        fixed.append(min(both) / max(both))
    found = measured(rows, "partition")["partition-reference"]
    error = np.std(drawn) * np.sqrt(1 / DRAWS + 1 / 40)
    assert found.value == pytest.approx(np.mean(drawn), abs=3 * error)
    assert np.mean(fixed) - np.mean(drawn) > 3 * error
    assert found.low < np.mean(drawn) < found.high


def test_the_reference_of_unit_vectors_does_not_depend_on_their_rounding(measured):
    rows = random_cloud(np.ones(36), 40, np.random.default_rng(9))
    found = [measured(scale * rows, "partition") for scale in (1 - 2e-7, 1.0, 1 + 2e-7)]
    references = [each["partition-reference"].value for each in found]
    assert references == pytest.approx([references[0]] * 3, rel=1e-6)


def test_the_reference_does_not_ask_where_the_rows_point(measured):
    rng = np.random.default_rng(5)
    norms = rng.uniform(1, 2, size=200)
    cone = norms[:, None] * np.array([0.6, 0.0, 0.8, 0.0])
    found = measured(cone, "partition")
    other = measured(random_cloud(norms, 4, rng), "partition")
    assert found["partition-reference"].value == pytest.approx(
        other["partition-reference"].value, rel=0.01
    )
    assert found["partition"].value < other["partition"].value / 2


def test_zero_rows_are_in_the_reference_too(measured):
    rows = np.zeros((20, 3))
    found = measured(rows, "partition")
    assert [found[name].value for name in PARTS] == pytest.approx([1.0, 0.0, 1.0])


def test_norms_of_ten_thousand_do_not_overflow(measured):
    rng = np.random.default_rng(6)
    rows = random_cloud(np.full(100, 1e4), 5, rng)
    found = measured(rows, "partition")
    along = rows @ np.linalg.eigh(rows.T @ rows)[1]
    tops = np.concatenate([along.max(axis=0), (-along).max(axis=0)])
    # one row decides each sum, so that its logarithm is its largest exponent
    assert found["partition-log"].value == pytest.approx(min(tops) - max(tops), rel=1e-6)


def test_what_underflows_keeps_a_finite_logarithm(measured):
    rows = np.random.default_rng(7).normal(size=(64, 8))
    rows[:, 0] += 2000
    found = measured(rows, "partition")
    assert found["partition"].value == 0.0
    assert (found["partition"].low, found["partition"].high) == (0.0, 0.0)
    log = found["partition-log"]
    assert log.low < log.value < log.high < -1500


def test_one_long_row_gives_an_interval_without_overflow(measured):
    rows = np.random.default_rng(8).normal(size=(64, 8))
    rows[3] = 600 * np.eye(8)[0]
    found = measured(rows, "partition")
    assert found["partition"].low <= found["partition"].value <= found["partition"].high
    assert np.isfinite([found["partition"].low, found["partition"].high]).all()


def test_more_rows_than_fifty_thousand_are_compared_with_one_draw(measured, monkeypatch):
    monkeypatch.setattr(import_module("isoscope.measures.partition"), "MANY", 99)
    rows = np.random.default_rng(9).normal(size=(100, 3))
    reference = measured(rows, "partition")["partition-reference"]
    assert 0 < reference.value < 1
    assert reference.low is reference.high is None


def test_identical_rows_a_constant_column_and_two_rows(value):
    for rows in (
        np.full((9, 3), 0.1),
        np.column_stack([np.random.default_rng(1).normal(size=(9, 2)), np.full(9, 0.7)]),
        np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]]),
    ):
        assert value(rows, "partition") == pytest.approx(by_definition(rows), rel=1e-9)


def test_a_value_too_small_for_a_number_has_an_interval_by_its_logarithm(measured):
    rows = 40 * np.random.default_rng(6).normal(size=(300, 4)) + 60
    found = measured(rows, "partition")
    low, high = found["partition-log"].low, found["partition-log"].high
    assert found["partition"].low == pytest.approx(np.exp(low))
    assert found["partition"].high == pytest.approx(np.exp(high))
    assert low < high


def test_the_reference_has_the_sides_of_the_value_beside_it(measured):
    rows = np.random.default_rng(7).normal(size=(200, 5))
    two, one = (
        measured(rows, "partition", as_published=published)["partition-reference"].value
        for published in (False, True)
    )
    assert one > two  # half as many directions to find extremes among
