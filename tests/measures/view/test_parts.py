"""Each group's part in the second moments, told by sketches or by the sample of rows."""

import numpy as np
import pytest

from isoscope.accumulate import Groups, Moments, Reservoir
from isoscope.hashing import named_documents
from isoscope.measures.interval import interval
from isoscope.measures.participation import participation
from isoscope.measures.view import Halves, Spectrum
from isoscope.measures.view.parts import (
    PrincipalAxes,
    SampledParts,
    SketchedParts,
    calibrate,
    parts_of,
    traces_with,
)


def planted(n=600, d=8, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) / np.arange(1, d + 1) ** 0.5 + 1


def axes_of(rows):
    """Return the axes of rows, about the mean and about zero."""
    n, mean = len(rows), rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    raw, others = np.linalg.eigh(rows.T @ rows / n)
    return PrincipalAxes(mean, vectors, {False: values, True: raw}, vectors.T @ others)


def names_of(rows, each=6):
    return (np.arange(len(rows)) // each).astype(str)


def cells_of(keys):
    """Return the group of every row: its document, or one of 32 where they are many."""
    groups = keys if len(np.unique(keys)) <= 32 else keys % np.uint64(32)
    return np.unique(groups, return_inverse=True)[1]


def second_moments(rows, cells, centre):
    parts = [rows[cells == cell] - centre for cell in range(cells.max() + 1)]
    return np.array([part.T @ part for part in parts])


@pytest.fixture(params=["documents", "many documents", "rows"])
def known(request, summaries):
    """Summaries of rows, with the group and the half of every row."""
    rows = planted()
    if request.param == "rows":
        every = summaries(rows)
        sample = every[Reservoir]
        return every, sample.rows, sample.cells, sample.documents % 2
    names = names_of(rows, 30 if request.param == "documents" else 6)
    keys = named_documents(names)
    return summaries(rows, names), rows, cells_of(keys), keys % 2


def test_documents_are_known_by_sketches_and_rows_by_a_sample(summaries):
    rows = planted()
    assert isinstance(parts_of(summaries(rows, names_of(rows))), SketchedParts)
    assert isinstance(parts_of(summaries(rows)), SampledParts)


def test_parts_along_axes_are_exact_while_all_is_seen(known):
    every, rows, cells, _ = known
    axes = axes_of(rows)
    for about_zero, found in parts_of(every).along(axes).items():
        centre = np.zeros(8) if about_zero else axes.mean
        onto = axes.vectors @ axes.turn if about_zero else axes.vectors
        exact = np.einsum("dj,kde,ej->kj", onto, second_moments(rows, cells, centre), onto)
        np.testing.assert_allclose(found, exact, atol=1e-5 * exact.max())
        whole = axes.values[about_zero] * (len(rows) - (not about_zero))
        np.testing.assert_allclose(found.sum(axis=0), whole, rtol=1e-5)


def test_sizes_are_rows(known):
    every, _, cells, _ = known
    np.testing.assert_allclose(parts_of(every).sizes, np.bincount(cells))


@pytest.mark.parametrize("half", [0, 1])
def test_rows_and_traces_of_a_half_are_about_its_mean(known, half):
    every, rows, cells, halves = known
    here = halves == half
    mean = rows[here].mean(axis=0)
    sizes, traces = SketchedParts(every[Groups]).within(half, mean)
    groups = np.unique(cells[here], return_inverse=True)[1]
    np.testing.assert_allclose(sizes, np.bincount(groups))
    exact = np.trace(second_moments(rows[here], groups, mean), axis1=1, axis2=2)
    np.testing.assert_allclose(traces, exact, rtol=1e-9)


@pytest.mark.parametrize("half", [0, 1])
def test_products_with_the_other_half_are_exact_while_all_is_seen(known, half):
    every, rows, cells, halves = known
    here = halves == half
    mean, other = rows[here].mean(axis=0), np.cov(rows[~here].T)
    if every[Moments].independent:
        assert every[Groups].sketch.shape[2] == 0  # no sketch is kept of these
        return
    scatter = (rows[here] - mean).T @ (rows[here] - mean)
    found = traces_with(every[Groups], every[Groups].halves == half, mean, scatter, other)
    groups = np.unique(cells[here], return_inverse=True)[1]
    exact = np.einsum("kde,ed->k", second_moments(rows[here], groups, mean), other)
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_groups_in_a_wide_space_still_add_up_to_what_is_known(summaries):
    rows = planted(d=100)
    axes = axes_of(rows)
    found = parts_of(summaries(rows, names_of(rows))).along(axes)
    for about_zero, whole in ((False, 599), (True, 600)):
        known = axes.values[about_zero] * whole
        parts = calibrate(found[about_zero], known)
        np.testing.assert_allclose(parts.sum(axis=0), known, rtol=1e-9)


def test_a_sample_stands_for_all_rows(summaries):
    rows = planted(n=8192)
    every = summaries(rows)
    parts = parts_of(every)
    assert every[Reservoir].count == 2048
    assert parts.sizes.sum() == pytest.approx(8192)
    assert parts.scale == pytest.approx(4)
    seen = every.view(Spectrum)
    np.testing.assert_allclose(seen.energy.sum(axis=0), seen.values * 8191, rtol=1e-9)


def test_sums_of_fourth_order_are_those_of_the_sampled_rows(summaries):
    rows = planted()
    every = summaries(rows)
    centred = rows - rows.mean(axis=0)
    scatter = centred.T @ centred
    sample = every[Reservoir]
    for cell, found in enumerate(every.view(Halves).fourths):
        y = sample.rows[sample.cells == cell] - rows.mean(axis=0)
        own = y.T @ y
        exact = [
            len(y),
            np.trace(own),
            (own * own).sum(),
            ((y**2).sum(axis=1) ** 2).sum(),
            (own * scatter).sum(),
        ]
        np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_an_error_over_a_sample_shrinks_by_the_root_of_what_it_stands_for(summaries):
    parts = parts_of(summaries(planted(n=8192)))
    assert parts.thinning == pytest.approx(0.5, rel=0.1)
    assert parts_of(summaries(planted())).thinning == pytest.approx(1.0)
    assert SketchedParts(summaries(planted())[Groups]).thinning == 1.0


def test_long_rows_that_the_sample_has_missed_widen_the_error(summaries):
    rows = planted(n=8192)
    sampled = {row.tobytes() for row in summaries(rows)[Reservoir].rows}
    missed = [i for i, row in enumerate(rows) if row.tobytes() not in sampled][:3]
    rows[missed] *= 30
    assert parts_of(summaries(rows)).thinning > 2


def test_identical_rows_have_no_fourth_powers_to_compare(summaries):
    assert parts_of(summaries(np.full((9, 3), 0.1))).thinning == 1.0


def test_the_interval_from_a_sample_is_as_wide_as_the_one_from_all_rows(summaries):
    lengths = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = rng.lognormal(sigma=0.3, size=8192)[:, None] * (planted(n=8192, seed=seed) - 1)
        names = np.arange(8192).astype(str)  # the same rows, each called a document
        for every in (summaries(rows), summaries(rows, names)):
            seen = every.view(Spectrum)
            low, high = interval(seen, participation, participation(seen), logarithmic=True)
            lengths.append(high - low)
    # 32 groups know a standard error to an eighth, and the two have groups of their own
    assert np.mean(lengths[::2]) == pytest.approx(np.mean(lengths[1::2]), rel=0.25)


def test_parts_are_scaled_to_what_is_known():
    parts = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, 0.0]])
    found = calibrate(parts, np.array([8.0, 1.0, 5.0]))
    np.testing.assert_allclose(found, [[2.0, 0.5, 0.0], [6.0, 0.5, 0.0]])
    np.testing.assert_allclose(calibrate(np.array([1.0, 3.0]), np.array(2.0)), [0.5, 1.5])
