"""Readings of endless documents: intervals of plain readings hold the population's value."""

import numpy as np
import pytest

from isoscope.measures import MEASURES
from isoscope.measures.extrapolate import FARTHEST, doubt, extrapolate
from isoscope.measures.interval import Spread, beyond, quantile
from isoscope.measures.view import RawSpectrum, Spectrum

SPECTRAL = [m.name for m in MEASURES.values() if m.reads in (Spectrum, RawSpectrum)]
D = 32


def variances(power=0.75):
    return np.arange(1, D + 1) ** -power


def collection(rng, documents, each, first=0):
    """Rows whose documents share three tenths of their variance, about a mean."""
    ids = np.repeat(np.arange(documents) + first, each)
    shared = rng.normal(size=(documents, D)).repeat(each, axis=0)
    noise = np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=(len(ids), D))
    return noise * np.sqrt(variances()) + 0.2, ids


@pytest.fixture(scope="module")
def population():
    """The population's values, by their definitions."""
    values = variances()
    share, trace = values / values.sum(), values.sum()
    raw = np.sqrt(np.linalg.eigvalsh(np.diag(values) + 0.04)[::-1])
    raw = raw / raw.sum()
    ratio = trace**2 / (values**2).sum()
    shrunk = 0.8 * values + 0.2 * trace / D
    rank = np.log(np.arange(5, D // 2 + 1))
    slope = np.polyfit(rank, np.log(values[4 : D // 2]), 1)[0]
    return {
        "participation": ratio,
        "isoscore": (ratio - 1) / (D - 1),
        "isoscore-star": (shrunk.sum() ** 2 / (shrunk**2).sum() - 1) / (D - 1),
        "effective-rank": np.exp(-(share * np.log(share)).sum()),
        "rankme": np.exp(-(raw * np.log(raw)).sum()),
        "stable-rank": trace / values[0],
        "top-share": values[0] / trace,
        "alpha": -slope,
    }


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


@pytest.mark.parametrize(("documents", "each"), [(90, 12), (400, 1)])
def test_intervals_of_plain_readings_hold_the_population(measured, population, documents, each):
    # of 12 draws; the intervals of the plain values themselves held nearly none
    rng, held, values = np.random.default_rng(documents), [], []
    for draw in range(12):
        rows, ids = collection(rng, documents, each, 1000 * draw)
        known = {"document": ids} if each > 1 else {}
        found = measured(rows, *SPECTRAL, **known)
        assert {*found} == {*population}
        for name, reading in found.items():
            assert reading.low <= reading.value <= reading.high
            assert not reading.warnings, (name, reading.warnings)
        held.append([found[n].low <= population[n] <= found[n].high for n in population])
        values.append([found[n].value for n in population])
    assert np.sum(held, axis=0).min() >= 9  # one in 2,000 below, at 5 % each
    # and the values did fall short: an interval about them could not have held the truth
    names = list(population)
    short = [names.index(n) for n in ("effective-rank", "rankme", "participation")]
    truth = np.array([population[n] for n in names])
    assert (np.mean(values, axis=0)[short] < truth[short]).all()


def test_the_interval_of_a_plain_reading_is_its_debiased_twins_and_holds_both(measured):
    rows, ids = collection(np.random.default_rng(3), 60, 10)
    twins = ("isoscore", "effective-rank", "mean-share", "mean-cosine")
    names = [f"{n}-cross" if n == "mean-cosine" else f"{n}-debiased" for n in twins]
    found = measured(rows, *twins, *names, document=ids)
    for plain, debiased in zip(twins, names, strict=True):
        ours, theirs = found[plain], found[debiased]
        assert ours.low == pytest.approx(min(theirs.low, ours.value), rel=1e-6)
        assert ours.high == pytest.approx(max(theirs.high, ours.value), rel=1e-6)


def test_a_spectrum_of_a_given_participation_has_it(measured, survey):
    from isoscope.study.reading import finalize_all

    rows, ids = collection(np.random.default_rng(4), 40, 5)
    held = survey(rows, ["isoscore"], ids.astype(str)).held
    seen = finalize_all(next(iter(held.values()))).view(Spectrum)
    for ratio in (1.0, 1.7, 20.0, float(D)):
        values = seen.with_participation(ratio).values
        assert values.sum() ** 2 / (values**2).sum() == pytest.approx(ratio)
        assert values.sum() == pytest.approx(seen.values.sum())


def test_few_documents_for_the_dimensions_are_warned_of(measured):
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(40), 60)
    noise = rng.normal(size=(40, 64)).repeat(60, axis=0) + rng.normal(size=(2400, 64))
    reading = measured(noise * np.arange(1, 65) ** -0.4, "rankme", document=ids)["rankme"]
    (text,) = reading.warnings
    assert text.startswith("may be biased low, by ")
    assert text.endswith("too few documents for its spectrum")


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
