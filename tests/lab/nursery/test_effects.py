"""Effects of a factorial experiment: by hand, against scipy, and how often they are wrong."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from isoscope.lab.nursery.effects import (
    Factor,
    Summary,
    analyse,
    contrasts,
    estimate,
    family_wise_error,
)

TWO = [Factor("a", ("no", "yes")), Factor("b", ("no", "yes"))]
PRESET = [Factor(name, ("no", "yes")) for name in ("tie", "norm", "attention", "frequency")]
OUTCOMES = [("measure", f"site {number}", "all") for number in range(7)]


def cells(factors):
    return list(product(*(factor.levels for factor in factors)))


def by_name(factors, values):
    return {
        each.name: estimate(each, Summary.of(values))
        for each in contrasts(factors, list(values))
    }


def runs(seed, *, spreads=None, effects=None, factors=PRESET, seeds=3):
    """Return a made-up table: seven correlated outcomes of every run, all of them noise."""
    rng = np.random.default_rng(seed)
    places = cells(factors)
    noise = rng.normal(size=(len(places), seeds, 7)) + rng.normal(size=(len(places), seeds, 1))
    if spreads is not None:
        noise *= spreads[:, None, None]
    table = {}
    for number, outcome in enumerate(OUTCOMES):
        table[outcome] = {
            cell: (
                noise[i, :, number] + (effects or {}).get(number, lambda _: 0.0)(cell)
            ).tolist()
            for i, cell in enumerate(places)
        }
    return table


def test_effects_and_interactions_by_hand():
    means = {("no", "no"): 1.0, ("no", "yes"): 2.0, ("yes", "no"): 4.0, ("yes", "yes"): 9.0}
    found = by_name(TWO, {cell: [mean - 1, mean + 1] for cell, mean in means.items()})
    assert found["a"].value == pytest.approx((4 + 9) / 2 - (1 + 2) / 2)
    assert found["b"].value == pytest.approx((2 + 9) / 2 - (1 + 4) / 2)
    # the effect of a is 3 without b and 7 with it
    assert found["a:b"].value == pytest.approx(4)
    # each cell has variance 2 and two seeds; four cells with weight a half
    error = np.sqrt(4 * 0.25 * 2 / 2)
    assert found["a"].freedom == 4 == 8 - 4
    assert found["a"].high - found["a"].value == pytest.approx(stats.t.ppf(0.975, 4) * error)
    assert found["a"].p == pytest.approx(2 * stats.t.sf(5 / error, 4))


def test_a_ladder_of_sizes_gives_the_slope_per_doubling():
    ladder = [Factor("width", ("32", "64", "128", "256"))]
    y = [0.9, 0.7, 0.6, 0.2]
    values = {(w,): [v - 0.1, v + 0.1] for w, v in zip(ladder[0].levels, y, strict=True)}
    slope = np.polyfit([5, 6, 7, 8], y, 1)[0]
    assert by_name(ladder, values)["width"].value == pytest.approx(slope)
    crossed = [*ladder, Factor("tie", ("no", "yes"))]
    both = {
        (w, t): [v * (1 + 2 * (t == "yes")) for v in found]
        for (w,), found in values.items()
        for t in ("no", "yes")
    }
    assert by_name(crossed, both)["width:tie"].value == pytest.approx(2 * slope)


def test_the_preset_has_ten_effects_and_32_degrees_of_freedom():
    rng = np.random.default_rng(0)
    values = {cell: rng.normal(size=3).tolist() for cell in cells(PRESET)}
    found = by_name(PRESET, values)
    assert len(found) == 10
    equal = {cell: [-1.0, 0.0, 1.0] for cell in values}
    # cells with the same variance: all 32, less what the correction for few seeds costs
    assert 30 <= by_name(PRESET, equal)["tie"].freedom * 2 <= 64
    pooled = np.mean([np.var(each, ddof=1) for each in values.values()])
    wide = found["tie"].high - found["tie"].value
    error = np.sqrt(16 * (1 / 8) ** 2 * pooled / 3)
    assert wide == pytest.approx(stats.t.ppf(0.975, found["tie"].freedom) * error)


def test_where_one_cell_alone_varies_its_own_degrees_of_freedom_count():
    values = {cell: [5.0, 5.0, 5.0] for cell in cells(TWO)}
    loud = ("yes", "yes")
    values[loud] = [5.0, 6.5, 9.0]
    found = by_name(TWO, values)["a"]
    # (5 + loud) / 2 - 5 is half of loud - 5: a t test of one sample
    alone = stats.ttest_1samp(np.array(values[loud]) - 5, 0)
    assert found.freedom == 2
    assert found.p == pytest.approx(alone.pvalue)


def test_one_seed_has_no_interval_and_one_of_several_borrows_a_variance():
    alone = by_name(TWO, {cell: [1.0] for cell in cells(TWO)})["a"]
    assert alone.value == 0 and alone.p is None and alone.low is None
    values = {cell: [0.0, 2.0] for cell in cells(TWO)}
    values["no", "no"] = [1.0]
    found = by_name(TWO, values)["a"]
    # three cells of variance 2 over two seeds, one of the same over one
    error = np.sqrt(0.25 * (3 * 2 / 2 + 2))
    assert found.high == pytest.approx(found.value + stats.t.ppf(0.975, found.freedom) * error)
    same = by_name(TWO, {cell: [3.0, 3.0] for cell in cells(TWO)})["a"]
    assert same.p is None and same.value == 0


def test_a_cell_that_is_missing_costs_one_combination():
    factors = [*TWO, Factor("c", ("no", "yes"))]
    values = {cell: [0.0, 1.0] for cell in cells(factors)}
    del values["no", "no", "no"]
    found = {each.name: each for each in contrasts(factors, list(values))}
    assert not found["a"].complete and len(found["a"].weights) == 6
    assert len(found["a:b"].weights) == 4
    gone = {cell: each for cell, each in values.items() if cell[0] == "yes"}
    assert "a" not in {each.name for each in contrasts(factors, list(gone))}


@pytest.mark.parametrize("unequal", [False, True])
def test_a_true_null_is_rejected_as_often_as_it_should_be(unequal):
    rng = np.random.default_rng(5)
    places = cells(PRESET)
    (contrast, *_) = contrasts(PRESET, places)
    spreads = np.exp(1.5 * rng.normal(size=16)) if unequal else np.ones(16)
    draws = 1500
    noise = rng.normal(size=(draws, 16, 3)) * spreads[None, :, None]
    chances = np.array(
        [
            estimate(contrast, Summary.of(dict(zip(places, each, strict=True)))).p
            for each in noise
        ]
    )
    # 5 % and four standard errors of the count; below it the test would be too careful
    assert 0.01 < np.mean(chances < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize("unequal", [False, True])
def test_the_family_wise_error_of_pure_noise_is_at_most_5_percent(unequal):
    spreads = np.exp(np.random.default_rng(1).normal(size=16)) if unequal else None
    hits = [
        any(each.p_holm < 0.05 for *_, each in analyse(PRESET, runs(seed, spreads=spreads)))
        for seed in range(300)
    ]
    assert np.mean(hits) <= 0.05


def planted(cell):
    return 3.0 * (cell[1] == "yes")


def test_permuted_labels_raise_few_false_alarms_even_of_a_table_with_an_effect():
    assert family_wise_error(PRESET, runs(0), 200) <= 0.05
    assert family_wise_error(PRESET, runs(0, effects={2: planted}), 200) <= 0.05


def test_a_planted_ingredient_is_found_with_its_sign_and_size():
    table = runs(3, effects={2: planted, 5: lambda cell: -planted(cell)})
    found = {
        (outcome, contrast.name): each for outcome, contrast, each in analyse(PRESET, table)
    }
    assert len(found) == 70
    sure = {key for key, each in found.items() if each.p_holm < 0.05}
    assert sure == {(OUTCOMES[2], "norm"), (OUTCOMES[5], "norm")}
    one, other = (found[OUTCOMES[number], "norm"] for number in (2, 5))
    assert one.low < 3 < one.high and one.low > 1.5
    assert other.low < -3 < other.high and other.high < -1.5
