"""The simulations themselves: small ones always, those behind the claims under `make slow`."""

import numpy as np
import pytest


def test_rows_of_a_document_correlate_as_the_design_says(script):
    design = script("simulate").Design(8, 0.0, documents=4000, tokens=(2, 2), rho=0.3)
    rows, documents = design.draw(np.random.default_rng(0))
    first, second = rows[0::2] - design.mean, rows[1::2] - design.mean
    assert (documents[0::2] == documents[1::2]).all()
    assert (first * second).mean() == pytest.approx(0.3, abs=0.02)
    assert first.var() == pytest.approx(1.0, abs=0.03)


def test_the_truth_is_that_of_the_population(script):
    design = script("simulate").Design(6, 1.0, rows=200_000)
    rows, _ = design.draw(np.random.default_rng(1))
    spectrum = np.linalg.eigvalsh(np.cov(rows.T))
    ratio = spectrum.sum() ** 2 / (spectrum**2).sum()
    assert design.truth()["isoscore-debiased"] == pytest.approx((ratio - 1) / 5, rel=0.02)
    units = rows / np.linalg.norm(rows, axis=1)[:, None]
    mean = units.mean(axis=0)
    assert design.truth()["mean-cosine-cross"] == pytest.approx(mean @ mean, rel=0.02)


def test_pairs_are_of_the_same_documents_and_correlate_as_they_should(script):
    design = script("simulate").Design(8, 0.0, documents=2000, tokens=(2, 2))
    first, second, documents = design.draw_pair(np.random.default_rng(2), 0.9)
    assert len(first) == len(second) == len(documents) == 4000
    off = [rows - design.mean for rows in (first, second)]
    assert (off[0] * off[1]).mean() == pytest.approx(0.9, abs=0.03)
    assert off[0].var() == pytest.approx(off[1].var(), rel=0.03)


def test_paired_differences_of_a_small_design_cover_and_are_narrower(script):
    simulate = script("simulate")
    design = simulate.Design(16, 0.5, documents=60, tokens=(5, 15))
    found = simulate.simulate("differences", design, 40, first_seed=7_000_000)
    for name, each in found["of"].items():
        assert each["covered"] >= 0.825, name  # 0.95 less three and a half standard errors
        assert each["width over independent"] < 0.7, name


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(6))
def test_the_debiased_isoscore_is_unbiased_with_other_seeds_too(script, number):
    simulate = script("simulate")
    assert len(simulate.BIAS) == 6  # one test for each, which workers share
    design, repetitions = simulate.BIAS[number]
    found = simulate.simulate("bias", design, repetitions, first_seed=5_000_000)
    assert found["isoscore-debiased"] == pytest.approx(found["truth"], abs=0.015), design


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("documents", [0, 100])
def test_intervals_cover_with_other_seeds_too(script, documents):
    simulate = script("simulate")
    rows = 0 if documents else 640
    design = simulate.Design(64, 1.0, documents=documents, rows=rows)
    found = simulate.simulate("documents", design, 400, first_seed=6_000_000)
    for name in ("mean-cosine-cross", "isoscore-debiased"):
        assert 0.90 <= found["of"][name]["covered"] <= 0.98
        assert found["of"][name]["width over oracle"] <= 1.5
