"""Pairs of curves that share shocks, early, late or at once, and pairs that share nothing."""

import numpy as np
import pytest

from isoscope.lab.trajectory.lead import candidate_lags, lead_chances, leads, move_together
from isoscope.lab.trajectory.shocks import best_shocks, have_pattern, model, places
from planted_curves import autoregressive, of_kind, sigmoids

N = 60


def coupled(random, lag, n=N, strength=2.0):
    """Return two curves; the shocks of the second follow those of the first after a lag."""
    first, second = random.normal(size=(2, 1, n + lag))
    second[:, lag:] += strength * first[:, :n]
    trend = sigmoids(random, 1, n)
    return (trend + autoregressive(first[:, lag:], 0.9))[0], autoregressive(
        second[:, lag:], 0.9
    )[0]


def share_of_alarms(kind, lags, n=40, count=400):
    random = np.random.default_rng(5)
    of = model(places(range(n)))
    a, b = (best_shocks(of, of_kind(kind, random, count, n)) for _ in range(2))
    tested = ~(have_pattern(a) | have_pattern(b))
    return np.mean(tested & (lead_chances(a, b, lags) <= 0.05))


@pytest.mark.parametrize("kind", ["ar-0.5", "ar-0.9", "walk", "sigmoid"])
def test_curves_that_share_nothing_are_rarely_associated(kind):
    assert share_of_alarms(kind, [0]) <= 0.0875  # 99.9 % of 400 draws at 5 %
    assert share_of_alarms(kind, candidate_lags(40)) <= 0.0875


def test_two_sigmoids_correlate_and_yet_do_not_move_together():
    random = np.random.default_rng(6)
    rises = sigmoids(random, 2, N, height=30) + random.normal(size=(2, N))
    assert np.corrcoef(rises)[0, 1] > 0.7
    assert not move_together(range(N), *rises).found


def test_shared_shocks_are_seen_under_different_trends():
    random = np.random.default_rng(7)
    found = move_together(range(N), *coupled(random, 0))
    assert found.found and found.correlation > 0.5 and found.n == N


@pytest.mark.parametrize("lag", [1, 2, 4])
def test_the_curve_that_moves_first_leads_and_by_how_much(lag):
    random = np.random.default_rng(18)
    first, second = coupled(random, lag)
    found = leads(range(N), first, second)
    assert found.found and found.lag == lag and found.correlation > 0.4
    assert found.correlations[found.lags.index(lag)] == found.correlation
    back = leads(range(N), second, first)
    assert not back.found
    assert back.correlations == pytest.approx(found.correlations[::-1])


def test_curves_that_move_at_once_do_not_lead():
    random = np.random.default_rng(9)
    alarms = [leads(range(N), *coupled(random, 0)).found for _ in range(60)]
    assert np.mean(alarms) <= 0.17  # 99.9 % of 60 draws at 5 %


def test_few_checkpoints_have_an_estimate_and_no_p_value():
    random = np.random.default_rng(10)
    curves = random.normal(size=(2, 29))
    short = move_together(range(19), *curves[:, :19])
    assert short.p is None and short.correlation is not None and "below 20" in short.note
    assert move_together(range(20), *curves[:, :20]).p is not None
    early = leads(range(29), *curves)
    assert early.p is None and len(early.correlations) == 5 and "below 30" in early.note
    assert leads(range(7), *curves[:, :7]).note == "fewer than 8 checkpoints"


def test_curves_without_noise_have_no_p_value():
    rises = sigmoids(np.random.default_rng(11), 2, N)
    found = move_together(range(N), *rises)
    assert found.p is None and "hardly any" in found.note
    flat = leads(range(N), rises[0], np.full(N, 0.1))
    assert flat.p is None and flat.lag is None and "does not change" in flat.note


def test_noise_that_is_louder_at_first_is_no_association():
    random = np.random.default_rng(12)
    loud = 3 * np.exp(-2 * np.arange(40) / 40)
    of = model(places(range(40)))
    a, b = (best_shocks(of, loud * random.normal(size=(400, 40))) for _ in range(2))
    assert np.mean(lead_chances(a, b, [0]) <= 0.05) <= 0.0875


def test_two_curves_of_the_length_of_the_steps_are_needed():
    with pytest.raises(ValueError, match="two curves of 30 values"):
        leads(range(30), [0.0] * 29, [0.0] * 29)
