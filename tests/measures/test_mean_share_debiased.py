"""mean-share-debiased against all pairs of rows of different documents, and planted means."""

import numpy as np
import pytest

from isoscope.accumulate import Groups
from isoscope.errors import TooFewRowsError
from isoscope.measures.mean_share_debiased import mean_share_debiased
from isoscope.measures.view import Masses


def by_definition(rows, documents):
    """Return the mean product of rows of different documents over the mean square."""
    apart = documents[:, None] != documents[None, :]
    return (rows @ rows.T)[apart].mean() / (rows**2).sum(axis=1).mean()


def planted(documents, seed, d=12, length=0.5):
    """Return documents of unequal length about a mean; the population's share."""
    rng = np.random.default_rng([seed, documents])
    names = np.repeat(np.arange(documents), rng.integers(1, 40, documents))
    shared = rng.normal(size=(documents, d))[names]
    rows = shared + rng.normal(size=(len(names), d)) + length
    return rows, names, length**2 / (length**2 + 2)


@pytest.mark.parametrize("documents", [5, 20, 60])
def test_only_rows_of_different_documents_are_multiplied(value, documents):
    rows, names, _ = planted(documents, 1)
    found = value(rows, "mean-share-debiased", document=names)
    assert found == pytest.approx(by_definition(rows, names), rel=1e-9)


def test_without_documents_every_row_is_one(value):
    rows = np.random.default_rng(2).normal(size=(50, 4)) + 0.3
    rows[7] = 0
    found = value(rows, "mean-share-debiased")
    assert found == pytest.approx(by_definition(rows, np.arange(50)), rel=1e-9)


def test_a_mean_far_away_loses_no_digits(value):
    rows, names, _ = planted(30, 3)
    found = value(rows + 1e4, "mean-share-debiased", document=names)
    assert 1 - found == pytest.approx(1 - by_definition(rows + 1e4, names), rel=1e-4)


def test_few_documents_leave_no_bias(measured):
    both = ("mean-share", "mean-share-debiased")
    draws = []
    for seed in range(60):
        rows, names, truth = planted(12, seed)
        found = measured(rows, *both, document=names)
        draws.append([found[name].value / truth - 1 for name in both])
    plain, debiased = np.mean(draws, axis=0)
    # a draw scatters by 0.5: a standard error of 0.07; the plain share has 1/12 of the rest
    assert plain > 0.3
    assert abs(debiased) < 0.15


def test_the_interval_leaves_out_each_group_exactly(viewed):
    rows, names, _ = planted(20, 4)
    seen = viewed(Masses, rows, names.astype(str))
    without = sorted(mean_share_debiased(seen.without(group)) for group in range(20))
    exact = sorted(
        by_definition(rows[names != name], names[names != name]) for name in range(20)
    )
    np.testing.assert_allclose(without, exact, rtol=1e-9)


def test_one_document_has_no_other(value):
    with pytest.raises(TooFewRowsError, match="needs at least 2 documents, got 1"):
        value(np.ones((9, 3)), "mean-share-debiased", document=np.zeros(9, dtype=int))


def test_zeros_have_no_share(value):
    with pytest.raises(TooFewRowsError, match="rows that are not zero, got only zeros"):
        value(np.zeros((9, 3)), "mean-share-debiased")


def test_a_run_that_kept_no_squares_is_measured_again(make_old):
    seen = make_old()
    with pytest.raises(TooFewRowsError, match="an old run does not have"):
        mean_share_debiased(seen)


@pytest.fixture
def make_old(summaries):
    """Return what makes the view of groups as versions before the squares saved them."""

    def make():
        rows, names, _ = planted(60, 5)
        every = summaries(rows, names.astype(str))
        state = {**vars(every[Groups])}
        state["own"] = state["pairs"] = np.full(len(state["keys"]), np.nan)
        return Masses(**state)

    return make
