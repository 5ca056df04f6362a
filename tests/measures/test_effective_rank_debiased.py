"""effective-rank-debiased against the definition: the whole and what its halves lack."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isoscope.api import compare
from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents
from isoscope.measures.interval import quantile


def rank_of(rows):
    variances = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    shares = variances / variances.sum()
    return np.exp(-sum(p * np.log(p) for p in shares if p > 1e-15))


def half_of(documents):
    return named_documents(np.array([str(each) for each in documents])) % 2


def by_definition(rows, documents):
    half = half_of(documents)
    halves = sum(rank_of(rows[half == side]) * np.mean(half == side) for side in (0, 1))
    whole = rank_of(rows)
    if whole <= halves:
        return 2 * whole - halves
    return 1 / (2 / whole - 1 / halves)


@given(seed=st.integers(0, 10**6), each=st.integers(1, 4), d=st.integers(1, 12))
def test_equals_what_the_whole_and_its_halves_extrapolate_to(value, seed, each, d):
    rng = np.random.default_rng(seed)
    documents = np.repeat(rng.choice(1000, size=10, replace=False), each)
    assume(np.bincount(half_of(documents).astype(int), minlength=2).min() >= 2)
    rows = rng.normal(size=(len(documents), d)) * rng.uniform(0.1, 2, size=d) + 1
    half = half_of(documents)
    lost = sum(rank_of(rows[half == side]) * np.mean(half == side) for side in (0, 1))
    assume(lost > 0.7 * rank_of(rows))  # beyond that the extrapolation is cut off
    found = value(rows, "effective-rank-debiased", document=documents)
    assert found == pytest.approx(by_definition(rows, documents), rel=1e-9)


def test_most_of_the_bias_of_few_rows_is_gone(measured):
    rows = np.random.default_rng(1).normal(size=(160, 16))
    found = measured(rows, "effective-rank", "effective-rank-debiased")
    plain, debiased = found["effective-rank"].value, found["effective-rank-debiased"].value
    assert abs(16 - debiased) < abs(16 - plain) / 3


def test_its_interval_leaves_groups_out_of_the_whole_and_of_their_half(measured):
    rng = np.random.default_rng(2)
    documents = np.repeat(np.arange(400), 5)
    rows = rng.normal(size=(400, 8))[documents] + rng.normal(size=(2000, 8))
    rows *= np.arange(1, 9)
    found = measured(rows, "effective-rank-debiased", document=documents)
    reading = found["effective-rank-debiased"]
    # the slow definition: both spectra computed anew without each group, axes included
    groups = named_documents(np.array([str(each) for each in documents])) % 32
    squares = 0.0
    for half in (0, 1):
        moved = []
        for group in range(half, 32, 2):
            kept = groups != group
            rest = by_definition(rows[kept], documents[kept])
            moved.append((by_definition(rows, documents) - rest) * kept.mean())
        squares += len(moved) / (len(moved) - 1) * np.sum((moved - np.mean(moved)) ** 2)
    reach = quantile(30) * np.sqrt(squares)
    assert reading.high - reading.value == pytest.approx(reach, rel=0.03)
    assert reading.value - reading.low == pytest.approx(reach, rel=0.03)


def test_few_rows_scatter_as_the_interval_says(measured):
    # the extrapolated value varies more than the plain one where n is not many times d
    rng = np.random.default_rng(6)
    scale = np.arange(1, 33) ** -0.25
    found = [
        measured(rng.normal(size=(64, 32)) * scale, "effective-rank-debiased")[
            "effective-rank-debiased"
        ]
        for _ in range(60)
    ]
    spread = np.std([each.value for each in found], ddof=1)
    width = np.median([each.high - each.value for each in found]) / quantile(31)
    assert 0.8 * spread < width < 1.4 * spread


def test_paired_differences_have_the_spread_of_the_debiased_value():
    # 120 such pairs differed by 0.90 (standard deviation); the spread of the plain value,
    # which intervals had once, is 0.56
    rng = np.random.default_rng(3)
    scale = np.arange(1, 33) ** -0.25
    widths = []
    for _ in range(6):
        texts = rng.normal(size=(64, 32))
        pair = ((texts + 0.5 * rng.normal(size=texts.shape)) * scale for _ in "ab")
        (change,) = compare(*pair, measures=["effective-rank-debiased"])
        assert change.paired
        widths.append((change.high - change.low) / 2 / quantile(31))
    assert 0.75 < np.median(widths) < 1.2


# --- the bias that remains ----------------------------------------------------------------


def spectrum(kind, d):
    rank = np.arange(1, d + 1)
    return {
        "white": rank**0.0,
        "i^-1/2": rank**-0.5,
        "i^-1": rank**-1.0,
        "spiked": np.where(rank <= 2, 40.0, 1.0),
    }[kind]


def truth_of(variances):
    share = variances / variances.sum()
    return np.exp(-(share * np.log(share)).sum())


def biased(reading):
    return [text for text in reading.warnings if "biased" in text]


def test_white_rows_that_are_fewer_than_the_dimensions_are_warned_of(measured):
    rows = np.random.default_rng(0).normal(size=(200, 300))
    reading = measured(rows, "effective-rank-debiased")["effective-rank-debiased"]
    (text,) = biased(reading)
    assert text.startswith("may be biased low, by ")
    assert text.endswith("beyond its interval: too few rows for its spectrum")


@pytest.mark.parametrize("kind", ["white", "i^-1/2", "i^-1", "spiked"])
@pytest.mark.parametrize(("n", "each"), [(60, 1), (3000, 1), (40, 12), (800, 12)])
def test_intervals_without_a_warning_hold_the_truth(measured, kind, n, each):
    # The rule was chosen at d = 64 and 256; other widths, sizes and spikes here.
    d, variances = 40, spectrum(kind, 40)
    rng = np.random.default_rng([n, each, len(kind)])
    held, warned = [], []
    for draw in range(8):
        documents = np.repeat(np.arange(n) + 10_000 * draw, each)
        shared = rng.normal(size=(n, d)).repeat(each, axis=0)
        rows = (np.sqrt(0.4) * shared + np.sqrt(0.6) * rng.normal(size=shared.shape)) * np.sqrt(
            variances
        )
        known = {"document": documents} if each > 1 else {}
        reading = measured(rows, "effective-rank-debiased", **known)["effective-rank-debiased"]
        held.append(reading.low <= truth_of(variances) <= reading.high)
        warned.append(bool(biased(reading)))
    missed = [not inside and not told for inside, told in zip(held, warned, strict=True)]
    assert sum(missed) <= 2  # of 8, with a chance of 5 % each: more than 2 is one in 170
    if n >= 800 and kind != "white":
        assert not any(warned)
    if n == 60 and kind in ("white", "i^-1/2"):
        assert all(warned)


def test_few_documents_have_no_interval(measured):
    rows = np.random.default_rng(3).normal(size=(28, 3))
    documents = np.repeat(np.arange(7), 4)
    found = measured(rows, "effective-rank-debiased", document=documents)
    reading = found["effective-rank-debiased"]
    assert reading.low is reading.high is None


def test_a_half_without_enough_rows_is_refused(value):
    rows = np.random.default_rng(4).normal(size=(60, 3))
    with pytest.raises(TooFewRowsError, match="at least 2 rows in each half of the documents"):
        value(rows, "effective-rank-debiased", document=np.zeros(60, dtype=int))


def test_identical_rows_have_no_rank(value):
    with pytest.raises(TooFewRowsError, match="needs rows that differ, got identical rows"):
        value(np.full((9, 3), 0.1), "effective-rank-debiased")


def test_a_line_reads_one(value):
    rows = np.outer(np.random.default_rng(5).normal(size=40), [1.0, 2.0, 3.0])
    assert value(rows, "effective-rank-debiased") == pytest.approx(1.0)
