"""Drift and anisotropy over layers: ranks, permutations, and a survey."""

from itertools import permutations

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import ConfigError, TooFewRowsError, UndefinedError
from isoscope.lab.drift.correlation import correlate, layers_of, permutation_test, ranks
from isoscope.lab.drift.results import AS_PUBLISHED
from isoscope.store import load


def slow_spearman(x, y):
    def place(values):
        return [
            sum(a < b for a in values) + (sum(a == b for a in values) + 1) / 2 for b in values
        ]

    return np.corrcoef(place(list(x)), place(list(y)))[0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_rho_and_p_are_those_of_all_orders(seed):
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=6).round(1), draw.integers(0, 4, 6).astype(float)  # with ties
    rho, p, tried, exact = permutation_test(x, y)
    assert rho == pytest.approx(slow_spearman(x, y), abs=1e-12)
    every = [abs(slow_spearman(x, order)) for order in permutations(y)]
    assert p == pytest.approx(np.mean(np.array(every) >= abs(rho) - 1e-9))
    assert exact and tried == 720


def test_many_layers_are_shuffled_at_random_and_p_is_never_zero():
    x = np.arange(13.0)
    rho, p, tried, exact = permutation_test(x, x)
    assert rho == 1.0 and p == 1 / 100_001 and tried == 100_000 and not exact
    draw = np.random.default_rng(0)
    y = draw.normal(size=13)
    rho, p, *_ = permutation_test(x, y, seed=1)
    t = rho * np.sqrt(11 / (1 - rho**2))
    stats = pytest.importorskip("scipy.stats")
    assert p == pytest.approx(2 * stats.t.sf(abs(t), 11), rel=0.05)  # its approximation


def test_ranks_are_shared():
    assert ranks(np.array([2.0, 2.0, 1.0, 5.0])).tolist() == [2.5, 2.5, 1.0, 4.0]


def test_a_survey_is_correlated_over_its_layers(tiny_run):
    (found,) = iso.drift(survey=tiny_run)
    run = load(tiny_run)
    norms, cosines = layers_of(run)
    read = {
        r.site: r.value
        for r in run.readings
        if (r.measure, r.variant, r.group) == ("mean-cosine", "all", "")
    }
    sites = ["embed", "resid.0", "resid.1", "resid.2"]
    assert cosines == pytest.approx([read[site] for site in sites], rel=1e-9)
    assert found.layers == 4 and found.permutations == 24 and found.exact
    assert found.spearman == pytest.approx(slow_spearman(norms, cosines))
    assert found.as_published and found.run == tiny_run.name
    shown = str(iso.drift(survey=[tiny_run, tiny_run]))
    assert "as published" in shown and " ".join(AS_PUBLISHED.split()[:4]) in shown


def test_what_has_no_layers_to_correlate_is_refused(tiny_run, tmp_path):
    iso.measure(np.random.default_rng(0).normal(size=(40, 5)), output=tmp_path / "rows")
    with pytest.raises(TooFewRowsError, match="at least 3 layers, got 0 in 'rows'") as caught:
        iso.drift(survey=tmp_path / "rows")
    assert caught.value.slug == "drift-layers"
    with pytest.raises(ConfigError, match="cannot save a correlation") as caught:
        iso.drift(survey=tiny_run, output=tmp_path / "run")
    assert caught.value.slug == "drift-survey-output"
    assert not (tmp_path / "run").exists()


def test_layers_that_are_all_the_same_cannot_be_ranked(tiny_run, monkeypatch):
    monkeypatch.setattr(
        "isoscope.lab.drift.correlation.layers_of",
        lambda _run: ([1.0] * 4, [0.1, 0.2, 0.3, 0.4]),
    )
    with pytest.raises(UndefinedError, match="all the same"):
        correlate(load(tiny_run))
