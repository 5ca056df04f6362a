"""Planted jumps are found where they are; smooth and autocorrelated curves have none."""

import numpy as np
import pytest

from isoscope.lab.trajectory.shocks import model, places
from isoscope.lab.trajectory.sudden import _without_jump, chance, find_sudden, fit_jumps
from planted_curves import of_kind, sigmoids

STEPS = list(range(0, 21000, 1000))


def test_a_planted_jump_is_placed_between_its_checkpoints():
    random = np.random.default_rng(0)
    off, held = [], []
    for _ in range(30):
        after = int(random.integers(4, 18))
        curve = sigmoids(random, 1, 21)[0] + random.normal(size=21)
        curve[after:] -= 12.0
        found = find_sudden(STEPS, curve)
        assert found.found and found.p < 0.02 and found.size < 0
        off.append(abs(STEPS.index(found.step) - after))
        held.append(found.low <= STEPS[after] <= found.high)
    assert max(off) <= 1
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("kind", ["ar-0.5", "ar-0.9", "walk", "sigmoid"])
def test_a_trend_with_noise_is_called_sudden_as_rarely_as_it_may(kind):
    curves = of_kind(kind, np.random.default_rng(1), 400, 21)
    at = places(range(21))
    alarms = np.mean(np.array(chance(at, fit_jumps(model(at), curves))) <= 0.05)
    assert alarms <= 0.0875  # 99.9 % of 400 draws at 5 %


def test_a_steep_but_smooth_rise_is_not_sudden():
    rise = 1 / (1 + np.exp(-(np.arange(21) - 10.3) / 1.5))
    assert not find_sudden(STEPS, rise).found


def test_a_rise_over_a_long_gap_is_not_sudden():
    steps = [*range(0, 1000, 100), *range(10_000, 11_000, 100)]
    random = np.random.default_rng(5)
    curve = np.array(steps) / 1000 + 0.05 * random.normal(size=20)
    assert not find_sudden(steps, curve).found
    assert find_sudden(range(20), curve).found  # if the steps were equally far apart


def test_a_jump_that_measurement_explains_is_none():
    curve = np.where(np.arange(21) < 9, 0.0, 1.0) + 0.05 * np.random.default_rng(3).normal(
        size=21
    )
    assert find_sudden(STEPS, curve).step == 9000
    assert find_sudden(STEPS, curve, [0.1] * 21).found
    doubtful = find_sudden(STEPS, curve, [1.0] * 21)
    assert not doubtful.found and doubtful.p > 0.3


def test_scale_level_and_slope_change_nothing():
    random = np.random.default_rng(4)
    curve = random.normal(size=21)
    plain = find_sudden(STEPS, curve)
    moved = find_sudden(STEPS, 1e-6 * curve + 3.0 + 1e-3 * np.arange(21))
    assert moved.p == pytest.approx(plain.p, rel=1e-4)
    assert moved.size == pytest.approx(1e-6 * plain.size, rel=1e-4)


def test_few_checkpoints_and_flat_curves_have_no_p_value():
    few = find_sudden(range(7), range(7))
    flat = find_sudden(range(12), [0.3] * 12)
    assert few.p is None and "8 checkpoints" in few.note
    assert flat.p is None and "does not change" in flat.note
    with pytest.raises(ValueError, match="got 3 for 4"):
        find_sudden(range(4), [1, 2, 3])


@pytest.mark.parametrize("kind", [3, 160])
def test_simulated_gains_are_those_of_the_fits_to_the_same_curves(kind):
    at = places(range(12))
    of = model(at)
    random = np.random.default_rng([17, kind])
    noise = [random.normal(size=(50, of.colour.shape[1])) @ of.colour[kind].T for _ in "12"]
    curves = np.pad(np.concatenate(noise), ((0, 0), (12 - of.colour.shape[1], 0)))
    few, many = (_without_jump(at, kind, count) for count in (50, 100))
    np.testing.assert_allclose(many, np.sort(fit_jumps(of, curves).gain), atol=1e-9)
    np.testing.assert_allclose(few, np.sort(fit_jumps(of, curves[:50]).gain), atol=1e-9)
