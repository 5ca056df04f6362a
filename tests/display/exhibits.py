"""Made-up runs for pages: every section has something to show, and any size can be had."""

import numpy as np

from isoscope.display.page.section import Exhibit
from isoscope.types import (
    CauseShare,
    CauseShares,
    DimensionScores,
    MatrixCells,
    Reading,
    SinkShare,
    SpectrumCurve,
)

MEASURES = {
    "mean-cosine": 0.3,
    "mean-cosine-cross": 0.28,
    "isoscore": 0.2,
    "isoscore-debiased": 0.22,
    "effective-rank": 20.0,
    "effective-rank-debiased": 24.0,
    "participation": 14.0,
    "mean-share": 0.25,
    "top-share": 0.1,
    "norm-spread": 0.05,
}
VARIANTS = ("all", "no-special", "no-sink")
FEW = "n < 10 d"


BANDS = ("frequency 1e-4 to 1e-3", "frequency above 1e-2", "position 0", "position 1")


def sites_of(layers):
    blocks = [f"resid.{layer}" for layer in range(layers)]
    return ["embed", *blocks, "norm.in", "norm.mid", "norm.out"]


def exhibit(
    name="demo",
    layers=3,
    measures=MEASURES,
    variants=VARIANTS,
    steps=(None,),
    bands=(),
    **other,
):
    """Return a run whose numbers all differ, so that a switch that does nothing is seen."""
    readings, levels = [], {}
    for step in steps:
        for s, site in enumerate(sites_of(layers)):
            for v, variant in enumerate(variants):
                for measure, value in dict(measures).items():
                    at = value * (1 + 0.05 * s + 0.01 * v + 1e-4 * (step or 0))
                    ends = (at * 0.98, at * 1.02)
                    warnings = (FEW,) if s == 1 else ()
                    where = (name, site, variant, "", step, measure)
                    readings.append(Reading(*where, at, *ends, 5000 - v, 64, warnings))
                    levels[site, variant, measure] = 0.0 if "cosine" in measure else 1.0
    readings += [
        Reading(
            name, site, variant, band, None, "mean-cosine", at, at - 0.01, at + 0.01, 90, 64
        )
        for s, site in enumerate(sites_of(layers))
        for v, variant in enumerate(variants)
        for b, band in enumerate(bands)
        for at in [0.1 + 0.05 * s + 0.01 * v + 0.1 * b]
    ]
    curves = [c for site in sites_of(layers) for v in variants for c in curves_of(site, v)]
    curves.append(matrix())
    facts = {"Model": name, "Rows": "5,000"}
    return Exhibit(name, readings, curves, facts, levels, "tokens", **other)


def curves_of(site, variant):
    rank = np.arange(1, 65)
    seed = len(site) + len(variant)
    value = np.exp(-rank / (9.0 + seed))
    yield SpectrumCurve(site, variant, rank, value, np.linspace(1.3, 0.7, 64), rows=800.0)
    score = np.random.default_rng(seed).uniform(0.5, 2.0, 32)
    score[7] = 40.0 + seed
    first = np.arange(0, 64, 2)
    yield DimensionScores(site, variant, first, first + 2, first + 1, score)
    if variant == "all":
        causes = (
            CauseShare("sinks", 0.2, 0.1, 0.3, "12 of 900 rows", False),
            CauseShare("dimensions", 0.3, 0.2, 0.4, "15 (30%)", True, falls_to=0.125),
            CauseShare("frequency", 0.4, 0.3, 0.5, "bands", False, first=0.45, last=0.35),
            CauseShare("mean", 0.6, None, None, "what all rows share", False),
        )
        yield CauseShares(site, "all", 0.3, causes)
    if variant == "all" and site in ("resid.1", "resid.2"):
        yield SinkShare(site, "all", share=0.97, rows=100, n=5000, documents=100)


def matrix():
    rng = np.random.default_rng(3)
    return MatrixCells(
        "embed.weight",
        "all",
        x=rng.normal(size=50),
        y=rng.normal(size=50),
        rows=rng.integers(1, 9, 50),
        band=rng.integers(0, 3, 50),
        bands=("not seen", "1 to 9 times", "not known"),
        of=30522,
    )
