"""Distance of tokens to the centroid of their type, against planted spreads."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Vocabulary
from isoscope.lab.tangent.distance import correlate, sampled_sites


def vocabulary(spread, seed=0, types=200):
    """Occurrences of types whose number follows 1 / rank; `spread` of the log of it."""
    rng = np.random.default_rng(seed)
    counts = np.maximum(2, (2000 / np.arange(1, types + 1)).astype(int))
    tokens = np.repeat(np.arange(types), counts)
    centres = 5 * rng.normal(size=(types, 12))
    scale = spread(np.log(counts))[tokens, None]
    rows = centres[tokens] + scale * rng.normal(size=(len(tokens), 12))
    order = rng.permutation(len(tokens))
    kept = Vocabulary(12)
    documents = np.arange(len(tokens), dtype=np.uint64)
    kept.update(ArrayBlock(rows[order], documents, documents, tokens=tokens[order]))
    return kept.finalize(), counts


def test_frequent_types_that_lie_closer_correlate_negatively():
    value, low, high = correlate(*vocabulary(lambda logs: 2 - 0.2 * logs))
    assert low < value < high < -0.3


def test_a_spread_that_does_not_know_of_frequency_does_not_correlate():
    """Also of types with two occurrences, whose centroid is pulled to them."""
    for seed in range(3):
        _, low, high = correlate(*vocabulary(lambda logs: 1 + 0 * logs, seed))
        assert low < 0.05 and high > -0.05


def test_few_types_have_no_correlation():
    assert correlate(*vocabulary(lambda logs: 1 + 0 * logs, types=3)) is None


def test_a_few_streams_are_sampled():
    sites = [f"grad.{n}" for n in range(30)]
    assert sampled_sites([*sites, "gradw.h.0"]) == ("grad.0", "grad.10", "grad.19", "grad.29")
    assert sampled_sites(["gradw.h.0"]) == ()
    assert sampled_sites(["grad.3"]) == ("grad.3",)


@pytest.mark.parametrize("seed", range(2))
def test_it_is_pearsons_r_of_the_kept_occurrences(seed):
    seen, counts = vocabulary(lambda logs: 2 - 0.2 * logs, seed, types=60)
    logs, distances = [], []
    for kind in range(len(seen.tokens)):
        rows = seen.rows[seen.owners == kind].astype(float)
        if len(rows) > 1:
            off = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
            distances += list(off * np.sqrt(len(rows) / (len(rows) - 1)))
            logs += [np.log(counts[seen.tokens[kind]])] * len(rows)
    assert correlate(seen, counts)[0] == pytest.approx(np.corrcoef(logs, distances)[0, 1])
