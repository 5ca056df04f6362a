"""A run folder of a made-up series: as many steps, sites and measures as one likes."""

import numpy as np

from isoscope.accumulate.survey import Survey
from isoscope.lab.trajectory.changes import StepReadings, find_courses
from isoscope.measures.interval import Spread
from isoscope.store import new_origin, save
from isoscope.store.series import (
    GroupParts,
    MetricCurve,
    Numbers,
    SeriesParts,
    SpectrumPoints,
    StepParts,
)
from isoscope.types import Reading

PYTHIA = (0, *(2**n for n in range(10)), *range(1000, 143_001, 1000))
MEASURES = (
    "mean-cosine", "mean-cosine-cross", "mean-cosine-centred", "isoscore", "isoscore-debiased",
    "effective-rank", "effective-rank-debiased", "mean-share", "mean-share-debiased",
    "top-share", "norm-spread", "participation",
)  # fmt: skip
THEORIES = ("norm-bias", "norm-gain", "norm-ratio", "hull-has-origin", "hull-margin")


def sites_of(layers):
    return ["embed", *(f"resid.{n}" for n in range(layers)), "norm.in", "norm.mid", "norm.out"]


def write_series(folder, steps=PYTHIA, layers=21, measures=MEASURES, *, lines=True, seed=0):
    """Write a run whose curves rise, jump in the middle, and fall with depth."""
    rng = np.random.default_rng(seed)
    sites = sites_of(layers)
    every = [
        _step(rng, place, step, len(steps), sites, measures) for place, step in enumerate(steps)
    ]
    found = [StepReadings(step, readings, spreads) for step, readings, spreads, _ in every]
    metric = MetricCurve(
        name="loss",
        steps=tuple(steps),
        values=tuple(3 + 8 / (1 + i) for i in range(len(steps))),
    )
    courses = find_courses(found, [metric]) if lines else []
    series = SeriesParts(
        steps=tuple(parts for *_, parts in every),
        metrics=(metric,),
        lines=tuple(each.to_dict() for each in courses),
    )
    source = {"name": "texts", "fingerprint": "f", "rows": 5000, "width": 64}
    origin = new_origin(
        sources=[{**source, "dtype": "float32", "documents": 40, "kind": "text"}],
        settings={"measures": list(measures), "documents": True, "zeta": 0.2},
        seed=0,
        kind="trajectory",
        model={"model": "series", "sha": "0" * 64, "architecture": "Tiny", "parameters": 9},
    )
    readings = [each for _, found, _, _ in every for each in found]
    save(folder, Survey(), readings, origin, {}, series=series.encode())
    return folder


def _step(rng, place, step, count, sites, measures):
    readings, spreads, spectra = [], {}, []
    keys = np.arange(32, dtype=np.uint64)
    at = place / max(count - 1, 1)
    for depth, site in enumerate(sites):
        for number, measure in enumerate(measures):
            level = 0.1 + 0.5 * at + 0.2 * (at > 0.5) + 0.01 * depth + 0.02 * number
            value = level + 0.003 * rng.normal()
            reach = 0.02 + 0.002 * rng.random()
            spreads[site, "all", measure] = Spread(0.002 * rng.normal(size=32), keys)
            readings.append(
                Reading(
                    "series",
                    site,
                    "all",
                    "",
                    step,
                    measure,
                    value,
                    value - reach,
                    value + reach,
                    5000,
                    64,
                )
            )
        rank = np.unique(np.geomspace(1, 512, 20).round().astype(int))
        values = 20 * rank ** -(0.5 + at) * (1 + 0.05 * rng.normal(size=len(rank)))
        spectra.append(
            SpectrumPoints(
                site=site, rank=tuple(rank.tolist()), value=tuple(np.abs(values).tolist()),
                isotropic=(1.0,) * len(rank), rows=900.0,
            )
        )  # fmt: skip
    for number, name in enumerate(THEORIES):
        readings.append(
            Reading(
                "series", "norm.out", "all", "", step, name, at + number, None, None, 64, 64
            )
        )
    for matrix in ("embed.weight", "unembed.weight"):
        for band, name in enumerate(
            ("0", "below 1e-5", "1e-5 to 1e-4", "1e-4 to 1e-3", "above 1e-2")
        ):
            for measure in ("row-norm", "common-share", "away-cosine", "away-projection"):
                value = band * at + 0.1 * rng.normal()
                readings.append(
                    Reading(
                        "series",
                        matrix,
                        "all",
                        f"frequency {name}",
                        step,
                        measure,
                        value,
                        value - 0.1,
                        value + 0.1,
                        90,
                        64,
                    )
                )
    parts = tuple(
        GroupParts(
            site=site,
            variant=variant,
            measure=measure,
            keys=0,
            parts=Numbers.of(each.parts),
            lost=1,
        )
        for (site, variant, measure), each in spreads.items()
    )
    listed = (Numbers.of(keys, "<u8"),)
    whole = StepParts(
        step=step, name=f"step{step}", keys=listed, parts=parts, spectra=tuple(spectra)
    )
    return step, readings, spreads, whole
