"""isoscore-debiased against the definition: U-statistics over every four rows, and halves."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.hashing import named_documents
from isoscope.measures.interval import effective_freedom
from isoscope.measures.isoscore_debiased import across_halves, himeno_yamada, log_spread
from isoscope.measures.view import Halves

numbers = st.integers(-80, 80).map(lambda i: i / 8)
small = st.tuples(st.integers(4, 7), st.integers(2, 5))
clouds = small.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def over_all_fours(rows):
    """Return the means of |x1-x2|^2 |x3-x4|^2 / 4 and ((x1-x2).(x3-x4))^2 / 4."""
    trace, squared = [], []
    for a, b, c, e in permutations(rows, 4):
        trace.append((a - b) @ (a - b) * ((c - e) @ (c - e)) / 4)
        squared.append(((a - b) @ (c - e)) ** 2 / 4)
    return np.mean(trace), np.mean(squared)


def by_definition(rows):
    trace, squared = over_all_fours(rows)
    return (trace / squared - 1) / (rows.shape[1] - 1)


def within_and_between(rows, documents):
    """Return the covariance of rows in documents by the analysis of variance.

    For documents of one length m: W is what is left within them, over n - G; the means of
    documents vary by B + W / m.
    """
    names, lengths = np.unique(documents, return_counts=True)
    (m,) = set(lengths)
    means = np.array([rows[documents == name].mean(axis=0) for name in names])
    off = rows - means[np.searchsorted(names, documents)]
    within = off.T @ off / (len(rows) - len(names))
    return within + np.cov(means.T) - within / m


def ratio_of_halves(rows, documents):
    """Return the ratio from products of the covariances of two halves of the documents."""
    names = documents.astype(str)
    half = named_documents(names) % 2
    first, second = (within_and_between(rows[half == s], names[half == s]) for s in (0, 1))
    return np.trace(first) * np.trace(second) / (first * second).sum()


def planted(documents=60, each=4, d=5, seed=1):
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(documents), each)
    shared = rng.normal(size=(documents, d))[names]
    rows = (0.8 * rng.normal(size=(len(names), d)) + 0.6 * shared) / np.arange(1, d + 1) ** 0.5
    return rows + 2, names


@pytest.mark.parametrize("seed", range(5))
def test_seven_rows_equal_the_average_over_all_fours_of_them(seed):
    rows = np.random.default_rng(seed).normal(size=(7, 5)) + 3
    trace, squared = over_all_fours(rows)
    centred = rows - rows.mean(axis=0)
    quartic = ((centred**2).sum(axis=1) ** 2).sum()
    found = himeno_yamada(7, centred.T @ centred, quartic)
    assert found == pytest.approx(trace / squared, rel=1e-12)


@given(rows=clouds)
def test_independent_rows_read_the_average_over_all_fours(value, rows):
    trace, squared = over_all_fours(rows)
    assume(squared > 1e-6 * trace)
    found = value(rows, "isoscore-debiased")
    assert found == pytest.approx(by_definition(rows), rel=1e-9, abs=1e-9)
    assert found >= -1e-12  # kernels are squares, and the first is never below the second


def test_four_rows_are_enough_and_three_are_not(value):
    rows = np.random.default_rng(2).normal(size=(4, 3))
    assert value(rows, "isoscore-debiased") == pytest.approx(by_definition(rows))
    with pytest.raises(TooFewRowsError, match="needs at least 4 rows, got 3"):
        value(rows[:3], "isoscore-debiased")


def test_fewer_rows_than_dimensions(value):
    rows = np.random.default_rng(3).normal(size=(6, 40)) + 1
    assert value(rows, "isoscore-debiased") == pytest.approx(by_definition(rows), rel=1e-9)


def test_documents_are_only_compared_across_halves(viewed):
    rows, documents = planted(documents=30)
    seen = viewed(Halves, rows, documents.astype(str))
    assert across_halves(seen) == pytest.approx(ratio_of_halves(rows, documents), rel=1e-9)


def two_directions(seed, documents, lengths):
    """Return documents that differ along two directions of 24, and the population's score."""
    rng = np.random.default_rng([seed, documents])
    sizes = np.full(documents, 12)
    if lengths == "pareto":
        sizes = np.clip(4 * (1 + rng.pareto(1.2, documents)), 4, 800).astype(int)
    names = np.repeat(np.arange(documents), sizes)
    variance = np.r_[6.0, 6.0, np.zeros(22)]  # between documents; 1 within them
    shared = rng.normal(size=(documents, 24)) * np.sqrt(variance)
    total = variance + 1
    truth = (total.sum() ** 2 / (total**2).sum() - 1) / 23
    return shared[names] + rng.normal(size=(len(names), 24)), names + 1000 * seed, truth


@pytest.mark.parametrize(("documents", "lengths"), [(33, "equal"), (100, "pareto")])
def test_documents_that_differ_along_few_directions_leave_no_bias(value, documents, lengths):
    off = []
    for seed in range(40):
        rows, names, truth = two_directions(seed, documents, lengths)
        off.append(value(rows, "isoscore-debiased", document=names) / truth - 1)
    # the standard error of 40 draws is 0.03
    assert abs(np.mean(off)) < 0.06


def test_likeness_within_documents_is_not_taken_for_anisotropy(measured):
    rng = np.random.default_rng(4)
    names = np.repeat(np.arange(100), 20)
    rows = rng.normal(size=(100, 64))[names] + rng.normal(size=(2000, 64))
    known = measured(rows, "isoscore-debiased", "isoscore", document=names)
    blind = measured(rows, "isoscore-debiased")["isoscore-debiased"].value
    assert known["isoscore-debiased"].value == pytest.approx(1.0, abs=0.03)
    assert known["isoscore"].value < blind < 0.9
    assert known["isoscore"].high == 1.0 and not known["isoscore"].warnings


def test_white_rows_read_one_on_average_and_are_not_clipped(value):
    rng = np.random.default_rng(5)
    draws = [value(rng.normal(size=(32, 48)), "isoscore-debiased") for _ in range(60)]
    # the standard error of the mean of 60 draws is 0.01
    assert np.mean(draws) == pytest.approx(1.0, abs=0.04)
    assert max(draws) > 1 > min(draws)


def test_a_line_reads_zero(value):
    rows = np.outer(np.random.default_rng(6).normal(size=40), [1.0, 2.0, 3.0])
    assert value(rows, "isoscore-debiased") == pytest.approx(0.0, abs=1e-12)


def test_a_constant_column_and_copies_are_nothing_special(value):
    rows = np.random.default_rng(7).normal(size=(6, 4))
    rows[:, 1], rows[3] = 0.1, rows[2]
    assert value(rows, "isoscore-debiased") == pytest.approx(by_definition(rows), rel=1e-9)


@pytest.mark.parametrize("n", [10, 40, 200])
def test_orthogonal_rows_have_no_two_differences_in_common(value, n):
    with pytest.raises(TooFewRowsError, match="differ in at least two ways, got fewer"):
        value(np.eye(n), "isoscore-debiased")


def test_rows_of_which_one_differs_are_not_enough(value):
    rows = np.ones((40, 5))
    rows[3, 2] = 4.0
    with pytest.raises(TooFewRowsError, match="differ in at least two ways, got fewer"):
        value(rows, "isoscore-debiased")
    with pytest.raises(TooFewRowsError, match="differ in at least two ways, got fewer"):
        value(np.ones((40, 5)), "isoscore-debiased")


def test_one_document_has_no_other_half(value):
    rows = np.random.default_rng(8).normal(size=(60, 3))
    message = "at least 2 rows in each half of the documents, got (60 and 0|0 and 60)"
    with pytest.raises(TooFewRowsError, match=message):
        value(rows, "isoscore-debiased", document=np.zeros(60, dtype=int))


def test_halves_that_share_no_variance_are_refused(viewed):
    documents = np.repeat(np.arange(12), 4)
    half = np.repeat(named_documents(np.arange(12).astype(str)) % 2, 4)
    rows = np.random.default_rng(9).normal(size=(48, 2)) * np.eye(2)[half]
    seen = viewed(Halves, rows, documents.astype(str))
    with pytest.raises(UndefinedError, match="variance shared by both halves, got none"):
        across_halves(seen)
    assert log_spread(seen) is None


def test_a_half_of_one_document_has_no_error(viewed):
    half = named_documents(np.arange(60).astype(str)) % 2
    kept = np.r_[np.flatnonzero(half == 0)[:1], np.flatnonzero(half == 1)[:11]]
    rows = np.random.default_rng(10).normal(size=(48, 3))
    seen = viewed(Halves, rows, np.repeat(kept, 4).astype(str))
    assert across_halves(seen) > 0
    assert log_spread(seen) is None


def test_one_dimension_has_no_score(value):
    with pytest.raises(TooFewRowsError, match="needs at least 2 dimensions, got 1"):
        value(np.arange(9.0)[:, None], "isoscore-debiased")


def test_the_error_is_that_of_leaving_out_each_group(viewed):
    rows, documents = planted(documents=30)
    names = documents.astype(str)
    found = log_spread(viewed(Halves, rows, names))
    error, groups = found.error, found.freedom
    half = named_documents(names) % 2
    variance = 0.0
    for side in (0, 1):
        ours, theirs = rows[half == side], rows[half != side]
        mean, other = ours.mean(axis=0), within_and_between(theirs, names[half != side])
        kept = names[half == side]
        documents = np.unique(kept)
        # for documents of one length the covariance is M / n + P / (n (G - 1)), a sum of parts
        parts = []
        for name in documents:
            off = ours[kept == name] - mean
            between = len(off) * np.outer(off.mean(axis=0), off.mean(axis=0))
            parts.append(off.T @ off + between / (len(documents) - 1))

        def ratio(matrix, other=other):
            return np.log(np.trace(matrix) / (matrix * other).sum())

        whole = sum(parts)
        np.testing.assert_allclose(whole / len(ours), within_and_between(ours, kept))
        moved = [ratio(whole) - ratio(whole - part) for part in parts]
        variance += (len(moved) - 1) / len(moved) * np.square(moved).sum()
    assert groups == effective_freedom(found.parts, lost=2)
    # groups are known by a float32 sketch
    assert error == pytest.approx(np.sqrt(variance), rel=1e-5)


def test_the_error_of_rows_is_that_of_leaving_them_out_of_the_unbiased_sums(viewed):
    rows = planted(documents=60)[0][:200]
    seen = viewed(Halves, rows)
    found = log_spread(seen)
    error, freedom = found.error, found.freedom
    cells = seen.parts.sample.cells
    sampled = seen.parts.sample.rows - rows.mean(axis=0)  # the mean stays that of all

    def ratio(part):
        lengths = (part**2).sum(axis=1)
        return np.log(himeno_yamada(len(part), part.T @ part, float((lengths**2).sum())))

    moved = np.array(
        [
            (ratio(sampled) - ratio(sampled[cells != cell])) * (cells != cell).mean()
            for cell in range(cells.max() + 1)
        ]
    )
    moved -= moved.mean()
    assert freedom == pytest.approx(effective_freedom(moved))
    expected = np.sqrt(len(moved) / (len(moved) - 1) * (moved @ moved))
    assert error == pytest.approx(expected, rel=1e-6)


def test_the_interval_holds_the_value_and_is_wider_with_fewer_documents(measured):
    few, many = (
        measured(rows, "isoscore-debiased", document=documents)["isoscore-debiased"]
        for rows, documents in (planted(documents=40), planted(documents=640))
    )
    assert few.low < few.value < few.high
    assert many.high - many.low < (few.high - few.low) / 2


@pytest.mark.parametrize("documents", [4, 7])
def test_few_documents_have_no_error(viewed, documents):
    rows, names = planted(documents=documents)
    assert log_spread(viewed(Halves, rows, names.astype(str))) is None


def test_a_group_with_all_the_variance_of_its_half_leaves_no_interval(measured):
    half = named_documents(np.arange(30).astype(str)) % 2
    first, second = (int(np.flatnonzero(half == side)[0]) for side in (0, 1))
    others = [each for each in range(30) if each not in (first, second)]
    rows = np.zeros((32, 4))
    rows[:4] = [[1, 2, 0, 1], [-1, -2, 0, -1], [2, 1, 1, 0], [-2, -1, -1, 0]]
    documents = np.r_[first, first, second, second, others]
    reading = measured(rows, "isoscore-debiased", document=documents)["isoscore-debiased"]
    assert reading.low is None
    assert "no interval: it is not defined without some of the groups" in reading.warnings
