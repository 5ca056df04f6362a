"""Rogue dimensions: found where planted, not found in a mean that points anywhere."""

from math import comb, log

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Directions, Reservoir
from isoscope.causes import BandedDirections, CloudSums
from isoscope.causes.dimensions import (
    _FINE,
    _ONE_IN,
    TOGETHER,
    _all_beyond,
    cosine_without,
    most_named,
    outliers,
    rogue_dimensions,
    stands_out,
)
from isoscope.causes.pairs import GroupSizes
from isoscope.hashing import named_documents


def quiet(vector):
    return vector, np.zeros(len(vector))


def seen(rows, documents):
    """The cloud of rows, the groups of its documents, and a sample of the rows."""
    block = ArrayBlock(rows, named_documents(documents))
    pointing, sample = Directions(block.width), Reservoir(block.width)
    pointing.update(block)
    sample.update(block)
    cloud = CloudSums.of(BandedDirections(pointing))
    return cloud, GroupSizes(cloud.sizes, cloud.documents), sample.finalize()


def leaning(mean, *, documents=60, length=30, seed=0):
    """Unit rows around a mean, and their documents."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(documents * length, len(mean)))
    noise *= np.sqrt((1 - mean @ mean) / len(mean))
    return mean + noise, np.repeat(np.arange(documents), length)


@pytest.mark.parametrize("width", [32, 64, 384, 768])
def test_a_mean_that_points_anywhere_has_none(width):
    rng = np.random.default_rng(width)
    found = [outliers(*quiet(rng.normal(size=width))) for _ in range(600)]
    assert sum(map(bool, found)) <= 14  # one in a hundred is expected


@pytest.mark.parametrize("width", [64, 384])
def test_planted_ones_are_found_the_largest_first(width):
    mean = np.random.default_rng(0).normal(size=width)
    mean[[5, 9]] = 20, -30
    assert outliers(*quiet(mean)) == [9, 5]


def test_two_stand_out_together_where_one_alone_would_not():
    mean = np.random.default_rng(2).normal(size=96)
    mean[4] = 3.7
    assert outliers(*quiet(mean)) == []
    mean[8] = -3.7
    assert set(outliers(*quiet(mean))) == {4, 8}


def test_a_dimension_that_is_large_because_it_varies_is_not_rogue():
    rng = np.random.default_rng(4)
    noise = np.full(128, 1.0)
    noise[11] = 100.0
    mean = rng.normal(size=128)
    mean[11] = 12.0
    assert outliers(mean, np.zeros(128)) == [11]
    assert outliers(mean, noise) == []


def test_it_goes_on_until_nothing_stands_out():
    mean = np.random.default_rng(1).normal(size=384)
    mean[:12] = 50
    assert sorted(outliers(*quiet(mean))) == list(range(12))
    mean[:12] = np.arange(50, 170, 10)
    assert outliers(*quiet(mean)) == list(range(11, -1, -1))


@pytest.mark.parametrize("width", [1, 2, 8])
def test_among_few_dimensions_none_stands_out(width):
    mean = np.ones(width)
    mean[0] = 1000.0
    assert outliers(*quiet(mean)) == []


def test_a_vector_of_zeros_has_none():
    assert outliers(*quiet(np.zeros(64))) == []


def test_more_together_need_to_stand_out_less():
    limits = [stands_out(count, 192) for count in range(1, TOGETHER + 1)]
    assert limits == sorted(limits, reverse=True)
    assert 4.2 < limits[0] < 4.8 and 3.3 < limits[1] < 3.8


def test_more_dimensions_ask_for_more_and_few_of_them_too():
    assert stands_out(1, 384) < stands_out(1, 10_000)
    assert stands_out(2, 16) > stands_out(2, 64)


@pytest.mark.parametrize("number", [1, 2, 8, 40])
def test_equal_dimensions_that_are_all_of_the_mean_have_all_of_it(number):
    mean = np.zeros(768)
    mean[:number] = np.sqrt(0.3 / number)
    cloud, groups, _ = seen(*leaning(mean))
    found = rogue_dimensions(cloud, groups)
    assert set(found.named) == set(range(number)) and found.stood_out == number
    assert found.share.value == pytest.approx(1, abs=0.002)
    assert found.share.low <= 1 <= found.share.high
    assert sum(found.named.values()) == pytest.approx(found.share.value)


@pytest.mark.parametrize("width", [7, 8, 12, 40, 2000, 20_000])
def test_limits_are_those_of_a_plain_bisection(width):
    for count in range(1, min(TOGETHER, width - 5) + 1):
        sets = log(comb(width, count)) + log(_ONE_IN * TOGETHER)
        low, high = 0, round(64 / _FINE)
        while high - low > 1:
            middle = (low + high) // 2
            rare = sets + _all_beyond(middle * _FINE, count, width - count) <= 0
            low, high = (low, middle) if rare else (middle, high)
        assert stands_out(count, width) == high * _FINE


def test_more_than_a_few_are_limited_and_the_interval_reaches_to_all_that_stand_out():
    mean = np.zeros(256)
    mean[:40] = 0.04 * 1.03 ** np.arange(40)
    cloud, groups, _ = seen(*leaning(mean))
    found = rogue_dimensions(cloud, groups)
    assert len(found.named) == most_named(256) == 32 < found.stood_out
    truth = np.sum(np.sort(mean)[-32:] ** 2) / (mean @ mean)
    assert found.share.value == pytest.approx(truth, abs=0.005) and truth < 0.99
    assert found.share.high > 0.99


def test_their_share_is_what_they_carry_of_the_mean():
    mean = np.random.default_rng(6).normal(size=384)
    mean *= np.sqrt(0.1) / np.linalg.norm(mean)
    mean[[3, 17]] = 0.3, -0.4
    cloud, groups, _ = seen(*leaning(mean))
    found = rogue_dimensions(cloud, groups)
    assert list(found.named) == [17, 3]
    truth = 0.25 / (mean @ mean)
    assert found.share.value == pytest.approx(truth, abs=0.01)
    assert found.share.low < truth < found.share.high


def test_a_dimension_that_one_group_decides_about_widens_the_interval_by_its_own_share():
    mean = np.random.default_rng(6).normal(size=384)
    mean *= np.sqrt(0.1) / np.linalg.norm(mean)
    mean[[3, 17]] = 0.3, -0.4
    shares, named = [], set()
    for size in np.linspace(0.0740, 0.0752, 8):  # from never named to always
        mean[40] = size
        cloud, groups, _ = seen(*leaning(mean))
        found = rogue_dimensions(cloud, groups)
        named.add(40 in found.named)
        truth = np.sum(mean[list(found.named)] ** 2) / (mean @ mean)
        assert found.share.low < truth < found.share.high
        shares.append(found.share)
    assert named == {False, True}
    assert max(each.high - each.low for each in shares) < 0.04  # it has 1.5 points


def test_zeroed_dimensions_leave_a_mean_that_rows_without_them_point_along():
    """Rows that two dimensions dominate: they carry 97 % of the cosine, it falls by less."""
    rng = np.random.default_rng(2)
    n, width = 3000, 128
    rows = 0.45 * rng.normal(size=(n, width)) / np.sqrt(width)
    rest = rng.normal(size=width - 2)
    rows[:, 2:] += 0.3 * rest / np.linalg.norm(rest)
    rows[:, :2] += 1.2
    documents = np.repeat(np.arange(100), 30)
    cloud, groups, sample = seen(rows, documents)
    found = rogue_dimensions(cloud, groups)
    assert set(found.named) == {0, 1} and found.share.value == pytest.approx(0.97, abs=0.01)
    before, after = cosine_without(sample, (0, 1))
    left = rows.copy()
    left[:, :2] = 0
    for share, full in ((before, rows), (after, left)):
        units = full / np.linalg.norm(full, axis=1, keepdims=True)
        sums = units.reshape(100, 30, -1).sum(axis=1)  # pairs of different documents
        truth = (np.sum(sums.sum(axis=0) ** 2) - np.sum(sums**2)) / (n**2 - 100 * 30**2)
        assert share.value == pytest.approx(truth, abs=0.02)
        assert share.low < truth < share.high
    # what carries 97 % is not what it falls by
    assert 1 - after.value / before.value < 0.8


def test_rows_that_become_zero_do_not_count_and_one_document_has_no_pairs():
    rows = np.eye(4)[[0, 0, 1, 1, 1, 2]] + np.eye(4)[3]
    _, _, sample = seen(rows, np.arange(6))
    before, after = cosine_without(sample, (0, 3))
    assert before.value == pytest.approx((2 * 1 + 6 * 1 + 22 * 0.5) / 30)
    assert after.value == pytest.approx(6 / 12)
    _, _, lone = seen(rows, np.zeros(6, dtype=int))
    assert cosine_without(lone, (0,)) is None
