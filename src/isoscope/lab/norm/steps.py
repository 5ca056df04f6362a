"""Before, between and after the final norm: what normalising, gain and bias each add."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isoscope.accumulate import Moments, Reservoir
from isoscope.accumulate.directions import cosine_over_pairs
from isoscope.lab.norm.affine import Affine
from isoscope.lab.norm.final_norm import FinalNorm, no_final_norm
from isoscope.lab.plain import Plain
from isoscope.lab.run_places import places_of, run_of
from isoscope.site import Site
from isoscope.store.run import Run
from isoscope.types import VARIANTS, Array


@dataclass(frozen=True)
class Step(Plain):
    """One measure on its way through the norm; None where the run has no such reading."""

    measure: str
    before: float | None  # norm.in
    between: float | None  # norm.mid: normalised, neither gain nor bias
    after: float | None  # norm.out


@dataclass(frozen=True)
class Gained(Plain):
    """Mean cosine in the middle of the norm, with its own gain and bias.

    The four means are over all pairs of the rows of the sample, so that they differ by
    nothing but the step. `zero_mean` is what the bias alone would give: |b|^2 over
    |b|^2 + sum of gain^2 times mean square, from all rows; it is r^2 / (1 + r^2) where
    every dimension has mean square one.
    """

    n: int  # rows of the sample
    normalised: float
    gain: float
    gain_and_bias: float
    centred_gain_and_bias: float  # without their mean, and so without its energy
    zero_mean: float | None  # None where there is no bias


@dataclass(frozen=True)
class NormSteps(Plain):
    """The final norm of one stack in one variant of its rows."""

    site: str
    variant: str
    steps: list[Step]
    reference: float | None
    gained: Gained | None = field(default=None)

    def __getitem__(self, measure: str) -> Step:
        return {step.measure: step for step in self.steps}[measure]


def through_norm(
    run: str | os.PathLike[str] | Run, norms: Sequence[FinalNorm] = ()
) -> list[NormSteps]:
    """Return what a run reads before, between and after each final norm, in each variant.

    With the norms of the model, as `final_norms` gives them, also what gain and bias do one
    after the other, and the reference.
    """
    whole = run_of(run)
    known = {norm.site: norm for norm in norms}
    sites = dict.fromkeys(
        site.group
        for site in (Site.parse(reading.site) for reading in whole.readings)
        if site.is_final_norm and site.part == "out"
    )
    if not sites:
        raise no_final_norm(f"the run {whole.path.name!r}")
    return [
        NormSteps(site, variant, steps, _reference(known.get(site)), gained)
        for site in sites
        for variant in VARIANTS
        if (steps := _steps(whole, site, variant))
        for gained in [_gained(whole, site, variant, known.get(site))]
    ]


def gained(rows: Array, affine: Affine, moments: Any = None) -> Gained:
    """Return what gain and bias make of the mean cosine of normalised rows."""
    rows = np.asarray(rows, dtype=np.float64)
    bias = np.zeros(rows.shape[1]) if affine.bias is None else affine.bias
    mean = rows.mean(axis=0)
    square = (rows**2).mean(axis=0)
    if moments is not None:  # of all rows, not of the sample
        mean, count = moments.mean, moments.count
        square = np.diag(moments.whole.scatter) / count + mean**2
    length = bias @ bias
    return Gained(
        n=len(rows),
        normalised=mean_cosine(rows),
        gain=mean_cosine(rows * affine.gain),
        gain_and_bias=mean_cosine(rows * affine.gain + bias),
        centred_gain_and_bias=mean_cosine((rows - mean) * affine.gain + bias),
        zero_mean=None
        if affine.bias is None
        else float(length / (length + affine.gain**2 @ square)),
    )


def mean_cosine(rows: Array) -> float:
    """Return the mean cosine over all pairs of rows that have a direction."""
    norms = np.linalg.norm(rows, axis=1)
    units = rows[norms > 0] / norms[norms > 0, None]
    n = len(units)
    if n < 2:
        return float("nan")
    total = units.sum(axis=0)
    return float(cosine_over_pairs(total @ total, n))


def _reference(norm: FinalNorm | None) -> float | None:
    return None if norm is None else norm.reference


def _steps(run: Run, site: str, variant: str) -> list[Step]:
    values: dict[str, dict[str, float]] = {}
    for reading in run.readings:
        at = Site.parse(reading.site)
        plain = not reading.group and reading.variant == variant
        if plain and at.is_final_norm and at.group == site:
            values.setdefault(reading.measure, {})[at.part] = reading.value
    return [
        Step(measure, found.get("in"), found.get("mid"), found.get("out"))
        for measure, found in values.items()
    ]


def _gained(run: Run, site: str, variant: str, norm: FinalNorm | None) -> Gained | None:
    if norm is None:
        return None
    for _, _, here in places_of(run, [str(replace(Site.parse(site), part="mid"))], variant):
        if Reservoir in here and Moments in here:
            sample = here[Reservoir].finalize()
            return gained(sample.rows, norm.affine, here[Moments].finalize())
    return None
