"""Drift and anisotropy: Spearman's correlation over the layers of a survey, by permutation."""

from itertools import permutations
from math import factorial

import numpy as np

from isoscope.accumulate import Directions, Moments, cosine_over_pairs
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.lab.drift.results import DriftCorrelation
from isoscope.site import Site, order_sites
from isoscope.store.run import Run
from isoscope.study.saved_runs import summaries_of, summary_of
from isoscope.types import Array

LEAST_LAYERS = 3  # two layers always agree or disagree
EXACT = 40_320  # orders that are all tried: those of eight layers
RANDOM = 100_000  # orders that are tried where there are more
_ROUNDING = 1e-9


def correlate(run: Run, seed: int = 0) -> DriftCorrelation:
    """Return the correlation of |mean| and mean cosine over the layers of a survey.

    Layers are the embeddings and the outputs of blocks, those of an encoder and a decoder
    together, as published.
    """
    norms, cosines = layers_of(run)
    if len(norms) < LEAST_LAYERS:
        raise TooFewRowsError(
            f"a correlation over layers needs at least {LEAST_LAYERS} layers, got "
            f"{len(norms)} in {run.path.name!r}",
            hint="survey the sites embed and resid with the measures isoscore and mean-cosine",
            slug="drift-layers",
        )
    if len(set(norms)) == 1 or len(set(cosines)) == 1:
        raise UndefinedError(
            f"cannot rank the layers of {run.path.name!r}: they are all the same",
            hint="survey a model whose layers differ",
            slug="drift-layers",
        )
    rho, p, tried, exact = permutation_test(np.array(norms), np.array(cosines), seed)
    model = run.origin.model.model if run.origin.model is not None else ""
    return DriftCorrelation(run.path.name, model, len(norms), rho, p, tried, exact)


def layers_of(run: Run) -> tuple[list[float], list[float]]:
    """Return the norm of the mean and the mean cosine of every layer that has both."""
    sites = [site for site in run.sites if Site.parse(site).family in ("embed", "resid")]
    norms: list[float] = []
    cosines: list[float] = []
    for _, _, here in summaries_of(run, order_sites(sites)):
        moments, directions = summary_of(here, Moments), summary_of(here, Directions)
        if moments is None or directions is None:
            continue
        mean, seen = moments.finalize().mean, directions.finalize()
        norms.append(float(np.linalg.norm(mean)))
        cosines.append(float(cosine_over_pairs(float(seen.total @ seen.total), seen.count)))
    return norms, cosines


def permutation_test(x: Array, y: Array, seed: int = 0) -> tuple[float, float, int, bool]:
    """Return Spearman's rho, its two-sided p, the orders tried, and whether these were all.

    >>> permutation_test(np.arange(4.0), np.array([1.0, 2.0, 4.0, 3.0]))[:3]
    (0.8, 0.3333333333333333, 24)
    """
    first, second = ranks(x), ranks(y)
    first, second = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((first @ first) * (second @ second)))
    rho = float(first @ second) / scale
    n = len(x)
    exact = factorial(n) <= EXACT
    if exact:
        orders = np.array(list(permutations(range(n))))  # (orders, n)
        all_rho = second[orders] @ first / scale
        extreme = int((np.abs(all_rho) >= abs(rho) - _ROUNDING).sum())
        return rho, extreme / len(orders), len(orders), True
    random = np.random.default_rng(seed)
    extreme = 0
    for size in (10_000,) * (RANDOM // 10_000):
        some = random.permuted(np.broadcast_to(second, (size, n)), axis=1)
        extreme += int((np.abs(some @ first / scale) >= abs(rho) - _ROUNDING).sum())
    return rho, (1 + extreme) / (1 + RANDOM), RANDOM, False


def ranks(values: Array) -> Array:
    """Return ranks from 1; equal values share theirs.

    >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
