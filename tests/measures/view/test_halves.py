"""Two halves of the documents: their covariances, and products across them."""

from dataclasses import replace

import numpy as np
import pytest

from isoscope.accumulate import Groups
from isoscope.errors import TooFewRowsError
from isoscope.hashing import named_documents, ordinal_documents
from isoscope.measures.isoscore_debiased import isoscore_debiased
from isoscope.measures.view import Halves, Spectrum, Summaries
from isoscope.measures.view.parts import SampledParts, SketchedParts
from isoscope.measures.view.spectrum import unbiased_weights


def planted(d, documents=20, each=6, seed=1):
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(documents), each).astype(str)
    return rng.normal(size=(len(names), d)) / np.arange(1, d + 1) ** 0.5 + 1, names


def test_each_half_has_the_covariance_of_its_documents(viewed):
    rows, names = planted(5)
    half = named_documents(names) % 2
    for side, found in enumerate(viewed(Halves, rows, names).covariances()):
        np.testing.assert_allclose(found, np.cov(rows[half == side].T), rtol=1e-9)


def test_rows_without_documents_are_dealt_to_halves_too(viewed):
    rows, _ = planted(5)
    half = ordinal_documents("rows", np.arange(120)) % 2
    for side, found in enumerate(viewed(Halves, rows).covariances()):
        np.testing.assert_allclose(found, np.cov(rows[half == side].T), rtol=1e-9)


def test_its_parts_are_sketches_of_documents_or_a_sample_of_rows(viewed):
    rows, names = planted(5)
    assert isinstance(viewed(Halves, rows, names).parts, SketchedParts)
    assert isinstance(viewed(Halves, rows).parts, SampledParts)


def test_it_knows_how_much_it_rests_on_and_the_whole(summaries):
    rows, names = planted(5)
    every = summaries(rows, names)
    seen = every.view(Halves)
    assert (seen.count, seen.documents) == (120, 20)
    assert seen.whole is every.view(Spectrum)


def test_rows_in_one_half_only_are_too_few(viewed):
    rows, names = planted(3, documents=1)
    message = r"at least 2 rows in each half of the documents, got (6 and 0|0 and 6)"
    with pytest.raises(TooFewRowsError, match=message):
        viewed(Halves, rows, names).covariances()


def test_a_value_alone_is_the_one_with_an_interval(summaries):
    rng = np.random.default_rng(6)
    names = np.repeat(np.arange(50), rng.integers(1, 9, 50)).astype(str)
    rows = rng.normal(size=(len(names), 5)) + rng.normal(size=(50, 5))[names.astype(int)]
    every, alone = summaries(rows, names), Summaries(intervals=False)
    alone.update(every)
    assert isoscore_debiased(alone.view(Halves)) == isoscore_debiased(every.view(Halves))


@pytest.mark.parametrize("documents", [9, 70])  # single documents, and groups of them
def test_covariances_show_what_endless_documents_would(viewed, documents):
    # between documents a variance of 4 along the first axis, within them 1 along both
    rng = np.random.default_rng(documents)
    unbiased, added, lacking = [], [], []
    for draw in range(80):
        sizes = np.clip(2 * (1 + rng.pareto(1.3, documents)), 2, 60).astype(int)
        numbers = np.repeat(np.arange(documents), sizes)
        rows = rng.normal(size=(len(numbers), 2))
        rows[:, 0] += 2 * rng.normal(size=documents)[numbers]
        names = np.array([f"{draw}-{number}" for number in numbers])
        half = named_documents(names)[np.cumsum(sizes) - 1] % 2  # of each document
        if min(np.bincount(half.astype(int), minlength=2)) < 2:
            continue
        seen = viewed(Halves, rows, names)
        plain, found = (
            np.mean([np.diag(each) for each in pair], axis=0)
            for pair in (seen.covariances(), seen.unbiased_covariances())
        )
        unbiased.append(found)
        added.append((found - plain)[0])
        # n rows in documents of n_g show n - sum n_g^2 / n of n - 1 parts of the variance
        parts = [sizes[half == side] for side in (0, 1)]
        short = [((n * n).sum() / n.sum() - 1) / (n.sum() - 1) for n in parts]
        lacking.append(4 * np.mean(short))
    error = np.std(unbiased, axis=0) / np.sqrt(len(unbiased))
    assert (np.abs(np.mean(unbiased, axis=0) - [5, 1]) < 3 * error).all()
    off = np.subtract(added, lacking)
    assert abs(off.mean()) < 3 * off.std() / np.sqrt(len(off))
    assert np.mean(added) > 6 * np.std(added) / np.sqrt(len(added))


def test_lengths_that_an_old_run_did_not_keep_change_nothing(summaries):
    groups = summaries(np.ones((80, 2)), np.repeat(np.arange(40), 2).astype(str))[Groups]
    unknown = replace(groups, pairs=np.full(groups.groups, np.nan))
    assert unbiased_weights(80.0, unknown) == (1.0, 0.0)
    on_scatter, on_means = unbiased_weights(80.0, groups)
    assert 0 < on_scatter < 1 and on_means > 0


def test_documents_of_one_row_lack_nothing(summaries):
    groups = summaries(np.ones((40, 2)), np.arange(40).astype(str))[Groups]
    assert unbiased_weights(40.0, groups) == (1.0, 0.0)
