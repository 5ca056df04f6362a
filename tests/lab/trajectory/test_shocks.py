"""Trend and noise as they are fitted, against their definition, and where checkpoints are."""

import numpy as np
import pytest

from isoscope.lab.trajectory.shocks import (
    LOST,
    all_shocks,
    best_shocks,
    have_pattern,
    likelihood,
    model,
    places,
)
from planted_curves import autoregressive

PYTHIA = [0, *(2**k for k in range(10)), *range(1000, 144_000, 1000)]


def test_pythia_is_counted_one_by_one():
    assert places(PYTHIA).order == tuple(float(i) for i in range(154))


@pytest.mark.parametrize(
    "steps", [PYTHIA, PYTHIA[1:], [2**k for k in range(12)], [2**k - 1 for k in range(12)]]
)
def test_trends_in_the_logarithm_of_the_step_leave_no_shocks(steps):
    at = places(steps)
    assert at.early[-1] == pytest.approx(at.order[-1])
    x, log = np.asarray(at.order), np.asarray(at.early)
    found = all_shocks(model(at), np.stack([x**0, x, log]))
    assert np.abs(found).max() < 1e-5
    assert abs(log[1] * x[2] - log[2] * x[1]) > 0.02 * log[2] * x[2]


def test_early_steps_are_those_of_the_logarithm():
    steps = np.array(PYTHIA)
    assert places(PYTHIA).early == pytest.approx(153 * np.log1p(steps) / np.log1p(steps[-1]))
    equal = np.arange(21)
    assert places(7000 * equal).early == pytest.approx(20 * np.log1p(equal) / np.log(21))


def test_steps_out_of_order_are_refused():
    for steps in ([0, 2, 1], [0, 0, 1], [0]):
        with pytest.raises(ValueError, match="increasing order"):
            places(steps)


def test_shocks_know_no_level_slope_or_logarithm_and_no_future():
    of = model(places(range(14)))
    x = np.arange(14.0)
    assert np.abs(all_shocks(of, np.stack([x**0, x, np.log1p(x)]))).max() < 1e-6
    curve = np.random.default_rng(0).normal(size=(1, 14))
    later = curve + 5.0 * (x >= 9)
    before, after = all_shocks(of, curve), all_shocks(of, later)
    assert np.abs(before[..., : 9 - LOST] - after[..., : 9 - LOST]).max() < 1e-9
    assert np.abs(before[..., 9 - LOST :] - after[..., 9 - LOST :]).max() > 0.1


def test_shocks_of_a_simulated_curve_are_what_it_was_simulated_from():
    of = model(places(range(20)))
    noise = np.random.default_rng(1).normal(size=(3, 20 - LOST))
    for kind in range(len(of.volume)):
        curves = np.pad(noise @ of.colour[kind].T, ((0, 0), (LOST, 0)))
        assert all_shocks(of, curves)[kind] == pytest.approx(noise, abs=1e-5)


def test_the_shocks_of_a_walk_and_of_white_noise_are_recovered():
    random = np.random.default_rng(2)
    shocks = random.normal(size=(20, 154))
    of = model(places(range(154)))
    for memory in (0.0, 0.9, 1.0):
        found = best_shocks(of, autoregressive(shocks, memory))
        likeness = [
            np.corrcoef(a[20:], b[20 + LOST :])[0, 1]
            for a, b in zip(found, shocks, strict=True)
        ]
        assert np.median(likeness) > 0.97


def test_the_likelihood_is_that_of_the_values_given_the_first_three():
    """The definition: a normal density of what the lines through the first values leave."""
    of = model(places(range(12)))
    curve = np.random.default_rng(3).normal(size=(1, 12))
    found = likelihood(of, all_shocks(of, curve))[:, 0]
    lines = np.column_stack([np.ones(12), np.arange(12), np.log1p(np.arange(12))])
    left = curve[0, LOST:] - lines[LOST:] @ np.linalg.solve(lines[:LOST], curve[0, :LOST])
    m = len(left)
    for kind in (0, 7, 30, len(found) - 1):
        spread = of.colour[kind] @ of.colour[kind].T
        scale = left @ np.linalg.solve(spread, left) / m
        density = -0.5 * (m * np.log(scale) + np.linalg.slogdet(spread)[1])
        constant = -0.5 * m * np.log(m)
        assert found[kind] == pytest.approx(density + constant, rel=1e-6)


def test_a_pattern_is_seen_where_there_is_one():
    random = np.random.default_rng(4)
    assert np.mean(have_pattern(random.normal(size=(2000, 60)))) < 0.07
    assert have_pattern(np.sin(np.arange(60) / 4))[None].all()
