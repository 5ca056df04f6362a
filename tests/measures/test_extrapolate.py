"""What a reading would be with endless documents, against series that are known."""

import numpy as np
import pytest
from scipy import stats

from isoscope.measures.extrapolate import (
    FARTHEST,
    Estimate,
    doubt,
    extrapolate,
    warn_of_doubt,
)
from isoscope.measures.interval import Spread, beyond, quantile
from isoscope.study.reading import survey_spreads


def test_inverses_of_documents_and_logarithms_of_rows_are_linear_in_one_over_n():
    n = 50.0
    inverse = [1 / (1 / 20 + 0.3 / each) for each in (n, n / 2)]
    assert extrapolate(*inverse, independent=False) == pytest.approx(20)
    decay = [20 * np.exp(-3 / each) for each in (n, n / 2)]
    assert extrapolate(*decay, independent=True) == pytest.approx(20)
    rising = [2 + 3 / each for each in (n, n / 2)]
    assert extrapolate(*rising, independent=False) == pytest.approx(2)


def test_an_extrapolation_goes_only_so_far():
    assert extrapolate(10.0, 4.0, independent=False) == 10 + FARTHEST * 6
    assert extrapolate(10.0, 0.0, independent=True) == 10 + FARTHEST * 10
    assert extrapolate(0.0, 1.0, independent=False) == -1
    assert doubt(1.0, 2.5, independent=False) == np.inf


def test_few_documents_for_the_dimensions_are_warned_of(measured):
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(40), 60)
    noise = rng.normal(size=(40, 64)).repeat(60, axis=0) + rng.normal(size=(2400, 64))
    reading = measured(noise * np.arange(1, 65) ** -0.4, "rankme", document=ids)["rankme"]
    (text,) = reading.warnings
    assert text.startswith("may be biased low, by ")
    assert text.endswith("too few documents for its spectrum")


def test_a_doubt_without_end_has_no_number():
    spread = Spread(np.ones(8), np.arange(8, dtype=np.uint64))
    found = Estimate(1.0, (0.0, 2.0), spread, np.inf)
    (text,) = warn_of_doubt(found, low=False, independent=False)
    assert text.startswith("may be biased high, by an unknown amount beyond its interval: ")


@pytest.mark.parametrize(("doubt", "shown"), [(103.2, "100"), (2347.0, "2300"), (4.26, "4.3")])
def test_a_doubt_is_a_plain_number_of_two_digits(doubt, shown):
    spread = Spread(np.ones(8) / 100, np.arange(8, dtype=np.uint64))
    (text,) = warn_of_doubt(Estimate(1.0, (0, 2), spread, doubt), low=True, independent=True)
    assert text.startswith(f"may be biased low, by {shown} beyond its interval: ")


# --- the end on the other side -------------------------------------------------------------


def estimated(*, doubt=0.0):
    spread = Spread(np.ones(31) / np.sqrt(31), np.arange(31, dtype=np.uint64))
    reach = quantile(30.0)
    assert spread.error == pytest.approx(1) and spread.freedom == 30
    return Estimate(50.0, (50 - reach, 50 + reach), spread, doubt)


def test_a_plain_value_that_is_near_changes_no_end():
    found = estimated()
    for plain in (48.1, 50.0, 51.9):
        assert found.ends_about(plain) == found.ends


def test_the_end_across_from_a_plain_value_far_away_leaves_out_5_per_cent():
    found, one_sided = estimated(), stats.t.ppf(0.95, 30)
    low, high = found.ends_about(44.0)
    assert (low, high) == (found.ends[0], pytest.approx(50 + one_sided, rel=1e-6))
    low, high = found.ends_about(56.0)
    assert (low, high) == (pytest.approx(50 - one_sided, rel=1e-6), found.ends[1])


def test_an_extrapolation_in_doubt_keeps_both_ends():
    found = estimated(doubt=1.5)
    assert found.ends_about(44.0) == found.ends


def test_the_interval_of_rankme_ends_where_5_per_cent_are_above(measured, survey):
    # documents enough for an extrapolation without doubt, whose bias is many standard errors
    rng = np.random.default_rng(8)
    ids = np.repeat(np.arange(120), 40)
    shared = rng.normal(size=(120, 48)).repeat(40, axis=0)
    rows = shared + rng.normal(size=(4800, 48)) + 0.3
    reading = measured(rows, "rankme", document=ids)["rankme"]
    (spread,) = survey_spreads(survey(rows, ["rankme"], ids), ["rankme"]).values()
    distance = (spread.centre - reading.value) / spread.error
    assert distance > 4 and not reading.warnings
    assert reading.low == reading.value
    reach = stats.t.ppf(0.95, spread.freedom)
    assert reading.high == pytest.approx(spread.centre + reach * spread.error, rel=1e-4)


# --- skewed parts --------------------------------------------------------------------------


def test_an_interval_reaches_further_up_where_few_groups_are_far_above():
    even = Spread(np.r_[np.ones(16), -np.ones(16)], np.arange(32))
    assert beyond(even) == 0
    skewed = Spread(np.r_[8.0, np.full(31, -8 / 31)], np.arange(32))
    skewness = (skewed.parts**3).sum() / skewed.error**3
    t = quantile(skewed.freedom)
    assert beyond(skewed) == pytest.approx(skewness * (2 * t * t + 1) / 6 * skewed.error)
    assert beyond(Spread(-skewed.parts, skewed.keys)) == 0


def test_norm_spread_of_heavy_tails_reaches_further_up(measured):
    rng = np.random.default_rng(6)
    ids = np.repeat(np.arange(50), 20)
    scale = 1 / np.sqrt(rng.chisquare(4, 50) / 4)
    rows = rng.normal(size=(1000, 8)) * scale.repeat(20)[:, None]
    reading = measured(rows, "norm-spread", document=ids)["norm-spread"]
    up, down = reading.high / reading.value, reading.value / reading.low
    assert up > 1.1 * down
