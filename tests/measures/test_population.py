"""Intervals of plain readings hold the population's value, and the reading itself."""

import numpy as np
import pytest

from isoscope.measures import MEASURES
from isoscope.measures.view import RawSpectrum, Spectrum
from isoscope.study.lanes import run
from isoscope.study.reading import finalize_all, kinds_for, survey_spreads
from isoscope.types import Chunk

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
    rows, ids = collection(np.random.default_rng(4), 40, 5)
    held = survey(rows, ["isoscore"], ids.astype(str)).held
    seen = finalize_all(next(iter(held.values()))).view(Spectrum)
    for ratio in (1.0, 1.7, 20.0, float(D)):
        values = seen.with_participation(ratio).values
        assert values.sum() ** 2 / (values**2).sum() == pytest.approx(ratio)
        assert values.sum() == pytest.approx(seen.values.sum())


def test_white_rows_that_read_above_the_width_still_have_a_spread(survey):
    rng = np.random.default_rng(7)
    for _ in range(4):
        spreads = survey_spreads(survey(rng.normal(size=(60, 8)), ["isoscore"]), ["isoscore"])
        (found,) = spreads.values()
        assert found.error > 0.01 and found.centre <= 1.0


def test_groups_of_independent_draws_have_nothing_in_common():
    """Two draws of one population, whose documents have the same ids, are paired by them.

    A share of each group that follows from its size alone would cancel in the difference of
    the two, whose interval would be too narrow, and make that of either too wide.
    """
    names, width = ("alpha", "effective-rank", "participation"), 160
    parts = {name: [] for name in names}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        shared = np.repeat(rng.normal(size=(100, width)), 40, axis=0)
        rows = (rng.normal(size=(4000, width)) + 0.5 * shared) / np.arange(1, width + 1) ** 0.3
        chunk = Chunk(rows, "rows", 0, documents=np.repeat(np.arange(100), 40))
        survey, _ = run([chunk], ("rows", "all"), kinds_for(names))
        found = survey_spreads(survey, names)
        for name in names:
            parts[name].append(found["rows", name].parts)
    for name in names:
        alike = np.corrcoef(parts[name])[np.triu_indices(5, 1)]
        assert abs(alike.mean()) < 0.15, name  # 10 pairs of 29 groups: 0.06 by chance
