"""Rules: silent while training is healthy, loud when it collapses, and once is enough."""

from math import log

import numpy as np
import pytest

from isoscope.control.watch.alert import (
    CosineRising,
    DeadDimensions,
    LossAtChance,
    RankFalling,
    usual_rules,
)

RANK = "anisotropy/effective-rank/resid.5"
COSINE = "anisotropy/mean-cosine/resid.5"
DEAD = "anisotropy/dead-dimensions/resid.5"


def series(*values, every=100):
    return [(every * number, value) for number, value in enumerate(values)]


def test_a_rank_that_falls_and_stays_is_reported_once_it_stayed():
    rule = RankFalling(share=0.5)
    assert rule({RANK: series(100, 98, 102, 60, 45)}) == []
    (alert,) = rule({RANK: series(100, 98, 102, 60, 45, 40)})
    assert (alert.step, alert.value, alert.reference) == (500, 40, 100)
    assert str(alert) == f"rank-falling at step 500: {RANK} is 40, was 100"
    assert rule({RANK: series(100, 98, 102, 45, 80, 45)}) == []


def test_a_collapse_from_the_start_is_seen_against_the_first_reading():
    assert RankFalling()({RANK: series(100, 2, 1.5)}) != []
    assert RankFalling()({RANK: series(100, 2)}) == []


def test_the_first_fall_of_a_language_model_from_nothing_is_no_alarm():
    rank = series(44.6, 45, 39.5, 26.5, 10, 4.2, 3.4, 2.8, 2.6, 3.1)  # as bench/watch.py saw
    cosine = series(0.38, 0.67, 0.9, 0.96, 0.78, 0.43, 0.41)
    for rule in usual_rules():
        assert rule({RANK: rank, COSINE: cosine}) == []
    told = [rule.name for rule in usual_rules(fine_tuning=True) if rule({RANK: rank})]
    assert told == ["rank-falling"]


def test_a_cosine_that_goes_half_of_the_way_to_one_is_reported():
    rule = CosineRising(share=0.5, level=0.5)
    assert rule({COSINE: series(0.2, 0.2, 0.2, 0.55, 0.59)}) == []
    (alert,) = rule({COSINE: series(0.2, 0.2, 0.2, 0.7, 0.8)})
    assert alert.rule == "cosine-rising"
    assert rule({COSINE: series(-0.4, -0.4, -0.4, 0.4, 0.45)}) == []  # far, and harmless
    assert rule({COSINE: series(0.9, 0.9, 0.9, 0.93, 0.94)}) == []
    assert rule({COSINE: series(0.9, 0.9, 0.9, 0.97, 0.98)}) != []


def test_held_out_texts_are_judged_and_batches_only_where_there_are_none():
    fallen = series(100, 100, 100, 1.2, 1.1)
    healthy = series(100, 100, 100, 100, 100)
    assert RankFalling()({f"{RANK}.batch": fallen, RANK: healthy}) == []
    assert len(RankFalling()({f"{RANK}.batch": fallen})) == 1


def test_the_loss_may_begin_at_chance_but_not_stay_or_come_back():
    rule = LossAtChance(8)
    chance = log(8)
    assert rule({"loss": series(*[chance] * 9)}) == []
    assert rule({"loss": series(*[chance] * 10)}) != []
    assert rule({"loss": series(chance, 1.0, 0.8)}) == []
    assert rule({"loss": series(1.0, 0.9, 0.8, 3.0, 3.0, 3.0)}) != []  # above is no better
    assert rule({"loss": series(chance, 1.0, chance, chance, chance)}) == []  # luck of a batch
    (alert,) = rule({"loss": series(chance, 1.0, 0.8, 0.7, chance, chance, chance * 1.01)})
    assert alert.reference == pytest.approx(chance)
    assert rule({}) == [] and rule({"loss": []}) == []


STEPS = np.arange(2000)
CURVES = {  # of healthy runs, as a share of chance
    "fast": 0.3 + 0.7 * np.exp(-STEPS / 50),
    "slow": 0.6 + 0.4 * np.exp(-STEPS / 300),
    "hard": 0.85 + 0.15 * np.exp(-STEPS / 500),
    "warm-up": np.where(STEPS < 100, 1.0, 0.5 + 0.5 * np.exp((100 - STEPS) / 200)),
}


def first_alarm(losses, n, every=20):
    """The first step at which a watch that reads every so many steps raises an alarm."""
    history = list(enumerate(losses.tolist()))
    rule = LossAtChance(n)
    reads = range(every, len(history) + 1, every)
    return next((end for end in reads if rule({"loss": history[:end]})), None)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.25])
@pytest.mark.parametrize("curve", CURVES)
def test_single_batches_of_healthy_runs_are_no_alarm(curve, noise):
    rng = np.random.default_rng(11)
    shares = CURVES[curve] + noise * rng.normal(size=(12, 2000))
    skewed = CURVES[curve] * np.exp(noise * rng.normal(size=(12, 2000)) - noise**2 / 2)
    alarms = [first_alarm(log(4) * each, 4) for each in (*shares, *skewed)]
    assert sum(each is not None for each in alarms) <= 1


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1, 0.25])
def test_single_batches_of_runs_that_stay_at_chance_or_return_to_it_are(noise):
    rng = np.random.default_rng(12)
    for _ in range(5):
        stuck, back = 1 + noise * rng.normal(size=(2, 2000))
        back[:1000] -= 1 - CURVES["slow"][:1000]
        assert first_alarm(log(4) * stuck, 4) <= (400 if noise < 0.1 else 1500)
        assert 1000 < first_alarm(log(4) * back, 4) <= 1500


def test_dimensions_that_die_are_reported():
    rule = DeadDimensions()
    assert rule({DEAD: series(0.0, 0.03, 0.04)}) == []
    assert rule({DEAD: series(0.0, 0.03, 0.08, 0.1)}) != []
    assert rule({DEAD: series(0.2, 0.2, 0.2)}) == []


@pytest.mark.parametrize("last_bits", [1, -1, 4])
def test_a_last_bit_of_the_first_loss_is_no_fall(last_bits):
    """A loss of float32 from which penalties were taken away again is off by that much."""
    chance = np.float32(log(2))
    first = float(chance + last_bits * np.spacing(chance))
    for values in ([first, *[float(chance)] * 15], [float(chance)] * 16):
        assert LossAtChance(2)({"loss": series(*values)}) != []
    falling = [float(chance) - 1e-4 * step for step in range(16)]
    assert LossAtChance(2)({"loss": series(*falling)}) == []


def test_the_usual_rules_know_chance_only_where_it_is_given():
    names = [rule.name for rule in usual_rules()]
    assert names == ["rank-falling", "cosine-rising", "dead-dimensions"]
    assert [rule.name for rule in usual_rules(4)][-1] == "loss-at-chance"


def test_noise_about_a_level_is_no_alarm():
    rng = np.random.default_rng(0)
    for _ in range(300):
        history = {
            RANK: series(*(100 * np.exp(0.1 * rng.normal(size=50)))),
            COSINE: series(*(0.3 + 0.05 * rng.normal(size=50))),
        }
        for rule in usual_rules():
            assert rule(history) == []
