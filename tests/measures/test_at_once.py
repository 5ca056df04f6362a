"""Measures without each group in one go are what single groups give, one after the other."""

import inspect

import numpy as np
import pytest

from isoscope.accumulate.survey import variants
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures.interval import AT_ONCE, values_without, without_each
from isoscope.measures.mean_share import mean_share
from isoscope.measures.view import Masses, RawSpectrum, Spectrum
from isoscope.store import load
from isoscope.study.reading import finalize_all


def view_of(compute):
    return next(iter(inspect.get_annotations(compute, eval_str=True).values()))


def one_by_one(seen, compute):
    """Return a measure without each group, by the definition."""
    if not (isinstance(seen, Spectrum) and seen.sketched):
        return [compute(seen.without(group)) for group in range(seen.groups)]
    return [of_a_sketch(seen, compute, group) for group in range(seen.groups)]


def of_a_sketch(seen, compute, group):
    """Follow the longest axes all the way where one moves far, the others along a slope."""
    value = compute(seen)
    left = max(seen.count - seen.sizes[group] - seen._spent, 1.0)
    whole = seen.values * (seen.count - seen._spent)
    step = np.where(
        seen.values > 1e-12 * seen.values.max(),
        (whole - seen.energy[group]) / left,
        seen.values,
    )
    step -= seen.values
    size = np.abs(step) / np.where(step != 0, seen.values, 1)
    top = np.arange(seen.width) < seen.sketched
    at = lambda values: compute(seen.changed(values=values))  # noqa: E731
    if size[top].max() > 0.3:
        large = np.where(top, step, 0)
        without = at(np.maximum(seen.values + large, 0))
        mirrored = seen.values - large
        value = without if mirrored.min() < 0 else value + (without - at(mirrored)) / 2
        step, size = step - large, np.where(large != 0, 0, size)
    if not size.max() > 0:
        return value
    near = 1e-3 / max(size.max(), 1)
    return value + (at(seen.values + near * step) - at(seen.values - near * step)) / (2 * near)


def cloud(kind):
    """Return rows in documents: plain ones, wide ones, or with one document far from all."""
    rng = np.random.default_rng(8)
    d, long = {"plain": (20, 0), "wide": (80, 0), "one far document": (80, 30)}[kind]
    names = np.repeat(np.arange(60), rng.integers(2, 30, 60))
    rows = rng.normal(size=(len(names), d)) / np.arange(1, d + 1) ** 0.7
    rows += 0.4 * rng.normal(size=(60, d))[names] + 0.3
    rows[names == 7] += long * np.eye(d)[d // 2]
    return rows, names.astype(str)


@pytest.mark.parametrize(
    "compute", AT_ONCE, ids=lambda of: f"{of.__module__[18:]}.{of.__name__}"
)
def test_it_is_the_same_in_one_go_at_every_site_of_a_model(compute, tiny_run):
    compared = 0
    for survey in load(tiny_run).by_site():
        for _, _, here in variants(survey.held):
            try:
                seen = finalize_all(here).view(view_of(compute))
            except (TooFewRowsError, UndefinedError):
                continue
            at_once = values_without(seen, compute)
            assert at_once == pytest.approx(one_by_one(seen, compute), rel=1e-9)
            compared += len(at_once)
    assert compared > 100


@pytest.mark.parametrize("kind", ["plain", "wide", "one far document"])
@pytest.mark.parametrize(
    "compute",
    [of for of in AT_ONCE if issubclass(view_of(of), Spectrum)],
    ids=lambda of: of.__name__,
)
def test_spectra_are_the_same_in_one_go(compute, kind, viewed):
    rows, names = cloud(kind)
    for documents in (names, None):
        seen = viewed(view_of(compute), rows, documents)
        assert (seen.sketched > 0) == (documents is not None)
        assert values_without(seen, compute) == pytest.approx(
            one_by_one(seen, compute), rel=1e-9
        )


def test_a_far_document_is_followed_all_the_way(viewed):
    rows, names = cloud("one far document")
    seen = viewed(Spectrum, rows, names)
    _, sizes = seen._steps
    assert (sizes[:, : seen.sketched].max(axis=1) > 0.3).sum() in range(1, seen.groups)


@pytest.mark.parametrize("compute", [of for of in AT_ONCE if view_of(of) is Masses])
def test_what_is_undefined_without_a_group_has_no_interval(compute, viewed):
    rows = np.zeros((60, 4))
    rows[7] = 1.0
    seen = viewed(Masses, rows, np.arange(60).astype(str))
    group = int(np.argmax(seen.mean.any(axis=1)))
    with pytest.raises(UndefinedError):
        compute(seen.without(group))
    assert np.isnan(values_without(seen, compute)).tolist() == [
        each == group for each in range(seen.groups)
    ]
    assert without_each(seen, compute) is None


def test_it_is_worked_out_once(viewed, monkeypatch):
    seen = viewed(Masses, *cloud("plain"))
    first = values_without(seen, mean_share)
    monkeypatch.setitem(AT_ONCE, mean_share, None)
    assert values_without(seen, mean_share) is first


def test_a_measure_with_options_is_another_one(viewed):
    from functools import partial

    seen = viewed(RawSpectrum, *cloud("plain"))

    def power(view, *, to=1.0):
        return float((view.values**to).sum())

    first, same, other = (
        values_without(seen, each) for each in (power, partial(power), partial(power, to=2.0))
    )
    assert first is same
    assert not np.allclose(first, other)
