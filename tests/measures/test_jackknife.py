"""Heads of few documents: intervals are for the value that endless documents would have."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Keys, Queries, QueryScores, Tally
from isoscope.accumulate.heads import STATISTICS
from isoscope.accumulate.survey import Survey
from isoscope.hashing import named_documents
from isoscope.measures.jackknife import PLAIN, RATIO, SQUARE, by_jackknife
from isoscope.measures.query_norm import query_norm
from isoscope.measures.view.heads import QueryMeans
from isoscope.study.reading import read_survey

WIDTH = 48
NAMES = ("query-norm", "query-isoscore", "query-first-share", "query-key-cosine")


def head(rng, documents, length=1.5, rows=20):
    """Return a head whose mean query and mean key are one vector; documents differ."""
    names = named_documents(np.array([f"{rng.integers(2**62)}" for _ in range(documents)]))
    of, places = np.repeat(names, rows), np.tile(np.arange(rows, dtype=np.uint64), documents)
    held = {}
    for kind in (Queries, Keys):
        own = 0.3 * rng.normal(size=(documents, WIDTH))
        cloud = np.repeat(own, rows, axis=0) + rng.normal(size=(len(of), WIDTH))
        cloud *= np.linspace(1.5, 0.5, WIDTH)
        block = ArrayBlock(cloud + length * np.eye(WIDTH)[0], of, places, folded=True)
        held[kind] = kind(WIDTH)
        held[kind].update(block)
        if kind is Queries:
            held[Tally] = Tally(WIDTH)
            held[Tally].update(block)
    ones = np.ones((len(of), len(STATISTICS)))
    held[QueryScores] = QueryScores(len(STATISTICS))
    held[QueryScores].update(ArrayBlock(ones, of, places, folded=True))
    found, _ = read_survey(Survey({("head.0.0", "all"): held}), NAMES)
    return {each.measure: each for each in found}


def test_intervals_of_few_documents_hold_the_value_of_many():
    """Plain jackknife intervals held the IsoScore of many documents in none of 25 draws."""
    truth = head(np.random.default_rng(0), 2000)
    draws = [head(np.random.default_rng([1, n]), 40) for n in range(12)]
    for name in NAMES:
        given = [each[name] for each in draws if each[name].low is not None]
        held = [r.low <= truth[name].value <= r.high for r in given]
        assert len(given) >= 9 and sum(held) >= len(held) - 2, name  # 95 % of 12
        assert all(r.low <= r.value <= r.high for r in given), name


def test_a_mean_that_is_mostly_noise_is_warned_of():
    short, long = (head(np.random.default_rng(3), 40, length) for length in (0.1, 1.5))
    for name in ("query-first-share", "query-key-cosine"):
        assert any("no longer than its error" in text for text in short[name].warnings), name
        assert not any("its error" in text for text in long[name].warnings), name


def test_the_square_of_a_length_is_corrected_exactly():
    rng = np.random.default_rng(4)
    sizes, means = rng.integers(1, 9, 10).astype(float), rng.normal(size=(10, 3)) + 1
    seen = QueryMeans(
        keys=np.arange(10, dtype=np.uint64), sizes=sizes, documents=10, mean=means
    )
    found = by_jackknife(seen, query_norm, SQUARE)
    total = sizes.sum()
    without = [
        np.square((sizes @ means - sizes[g] * means[g]) / (total - sizes[g])).sum()
        for g in range(10)
    ]
    plain = np.square(sizes @ means / total).sum()
    expected = 10 * plain - ((1 - sizes / total) * without).sum()
    assert found.value == pytest.approx(np.sqrt(expected), rel=1e-12)
    assert found.spread.correction == pytest.approx(found.value - np.sqrt(plain))
    assert found.ends[0] < found.value < found.ends[1]


@pytest.mark.parametrize("scale", [PLAIN, SQUARE, RATIO])
def test_scales_lead_there_and_back(scale):
    class Seen:
        width = 16

    for value in (0.0, 0.01, 0.5, 1.0):
        assert scale.back(scale.there(value, Seen), Seen) == pytest.approx(value, abs=1e-12)
    assert SQUARE.back(-0.1, Seen) == 0.0  # what noise alone is long
    assert RATIO.back(9.0, Seen) == pytest.approx(1.0, abs=1e-12)  # not above its largest
