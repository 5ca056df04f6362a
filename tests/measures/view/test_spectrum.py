"""Spectra of the covariance and of the raw second moments, whole and without a group."""

from functools import partial

import numpy as np
import pytest

from isoscope.api import measure
from isoscope.errors import UndefinedError
from isoscope.hashing import named_documents
from isoscope.measures.alpha import slope
from isoscope.measures.effective_rank import entropy_rank
from isoscope.measures.interval import standard_error
from isoscope.measures.participation import ratio
from isoscope.measures.view import RawSpectrum, Spectrum
from isoscope.measures.view.axes import no_spread, nonzero_values


def planted(n=4096, d=8, groups=32, seed=1):
    """Return rows in so many documents that leaving out one changes little."""
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(groups), n // groups).astype(str)
    shared = rng.normal(size=(groups, d))[np.repeat(np.arange(groups), n // groups)]
    rows = (rng.normal(size=(n, d)) + 0.3 * shared) / np.arange(1, d + 1) ** 0.5 + 1
    return rows, names


def covariance_values(rows):
    return np.linalg.eigvalsh(np.cov(rows.T))[::-1]


def raw_values(rows):
    return np.linalg.svd(rows, compute_uv=False) ** 2 / len(rows)


@pytest.mark.parametrize(("n", "d"), [(50, 4), (10, 40), (2, 3)])
def test_values_are_those_of_the_covariance_largest_first(viewed, n, d):
    rows = np.random.default_rng(2).normal(size=(n, d)) + 1
    seen = viewed(Spectrum, rows)
    exact = np.maximum(covariance_values(rows), 0)
    np.testing.assert_allclose(seen.values, exact, atol=1e-12)
    assert seen.rank == min(n - 1, d)
    assert not seen.values[seen.rank :].any()
    assert (seen.width, seen.count, seen.documents) == (d, n, n)


@pytest.mark.parametrize(("n", "d"), [(50, 4), (10, 40), (2, 3)])
def test_raw_values_are_squared_singular_values_over_the_rows(viewed, n, d):
    rows = np.random.default_rng(3).normal(size=(n, d)) + 1
    seen = viewed(RawSpectrum, rows)
    assert seen.rank == min(n, d)
    np.testing.assert_allclose(seen.values[: seen.rank], raw_values(rows), rtol=1e-9)
    assert not seen.values[seen.rank :].any()


@pytest.mark.parametrize("view", [Spectrum, RawSpectrum])
def test_groups_have_all_the_energy_between_them(viewed, view):
    rows, names = planted(d=40)
    seen = viewed(view, rows, names)
    freedom = seen.count - (view is Spectrum)
    np.testing.assert_allclose(seen.energy.sum(axis=0), seen.values * freedom, rtol=1e-9)
    assert seen.sizes.sum() == seen.count
    assert seen.groups == 32


@pytest.mark.parametrize("compute", [ratio, entropy_rank, np.sum])
@pytest.mark.parametrize(
    ("view", "values"), [(Spectrum, covariance_values), (RawSpectrum, raw_values)]
)
def test_without_a_group_any_function_is_right_to_first_order(viewed, view, values, compute):
    rows, names = planted()
    seen = viewed(view, rows, names)
    keys = named_documents(names)
    whole = compute(seen.values)
    exact = np.array([compute(values(rows[keys != key])) for key in np.unique(keys)])
    found = np.array([compute(seen.without(group).values) for group in range(32)])
    # a group is 1/32: what is left out goes with its square
    assert np.abs(found - exact).max() < 0.1 * np.abs(exact - whole).max()


@pytest.mark.parametrize("compute", [ratio, entropy_rank])
def test_the_second_order_that_is_left_shrinks_with_the_group(viewed, compute):
    errors = []
    for n in (2048, 8192):  # one document of fixed size among more and more others
        rows, _ = planted(n=n)
        names = np.r_[np.zeros(100, dtype=int), 1 + np.arange(n - 100) // 500].astype(str)
        rows[:100] *= 2
        seen = viewed(Spectrum, rows, names)
        keys = named_documents(names)
        group = int(np.flatnonzero(np.unique(keys) == keys[0])[0])
        exact = compute(covariance_values(rows[100:]))
        errors.append(abs(compute(seen.without(group).values) - exact))
    assert errors[1] < errors[0] / 6  # four times as many rows: a sixteenth, less the noise


def test_all_the_spread_in_one_group_cannot_be_excluded(viewed):
    rows = np.zeros((22, 3))
    rows[:2] = [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]
    names = np.r_[0, 0, np.arange(1, 21)].astype(str)
    for view in (Spectrum, RawSpectrum):
        seen = viewed(view, rows, names)
        with pytest.raises(UndefinedError, match="needs rows that differ, got identical rows"):
            seen.without(int(np.argmax(seen.sizes)))


def test_a_single_group_leaves_nothing(viewed):
    rows = np.random.default_rng(4).normal(size=(9, 3))
    seen = viewed(Spectrum, rows, np.array(["a"] * 9))
    with pytest.raises(UndefinedError, match="needs rows that differ"):
        seen.without(0)


def test_identical_rows_have_no_covariance_but_second_moments(viewed):
    rows = np.full((9, 3), 0.1)
    with pytest.raises(UndefinedError, match="needs rows that differ, got identical rows"):
        viewed(Spectrum, rows)
    np.testing.assert_allclose(viewed(RawSpectrum, rows).values, [0.03, 0, 0], atol=1e-12)
    with pytest.raises(UndefinedError):
        viewed(RawSpectrum, np.zeros((9, 3)))


def test_eigenvalues_past_the_rank_or_below_zero_are_zero():
    values = np.array([-1e-17, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(nonzero_values(values, 2), [0, 0, 2, 3])
    np.testing.assert_array_equal(nonzero_values(values, 4), [0, 1, 2, 3])
    assert values[0] < 0  # what is given stays
    assert no_spread().slug == "no-spread"


@pytest.fixture
def decomposed(monkeypatch):
    """Return a list to which each decomposition adds its name."""
    calls = []

    def count(name, of, matrix):
        calls.extend([name] * (matrix.ndim == 2))  # not the many small ones of sketches
        return of(matrix)

    for name in ("eigh", "eigvalsh"):
        monkeypatch.setattr(np.linalg, name, partial(count, name, getattr(np.linalg, name)))
    return calls


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, 3),  # all rows and two halves, of which those about zero follow
        (["rankme"], 3),
        (["rankme", "alpha", "effective-rank-debiased"], 3),
        (["isoscore", "participation"], 1),
        (["isoscore-debiased", "isoscore"], 1),
        (["mean-cosine"], 0),
    ],
)
def test_nothing_is_decomposed_twice(decomposed, documents, names, expected):
    rows, ids = planted(n=640, d=60)
    measure(rows, document=ids if documents else None, measures=names)
    assert decomposed == ["eigh"] * expected


@pytest.mark.parametrize("documents", [True, False])
def test_both_spectra_of_one_decomposition_are_those_of_two(summaries, documents):
    rows, ids = planted(n=640, d=60)
    one, two = (summaries(rows, ids if documents else None) for _ in range(2))
    one.spectra = frozenset({False, True})
    for view in (Spectrum, RawSpectrum):
        for seen, other in zip(
            (one.view(view), *one.view(view).halves()),
            (two.view(view), *two.view(view).halves()),
            strict=True,
        ):
            np.testing.assert_array_equal(seen.values, other.values)
            np.testing.assert_array_equal(seen.energy, other.energy)


SPECTRAL = [
    "isoscore",
    "isoscore-star",
    "participation",
    "effective-rank",
    "effective-rank-debiased",
    "rankme",
    "alpha",
    "stable-rank",
]


def values_of(rows, names=SPECTRAL, **options):
    return {r.measure: r.value for r in measure(rows, measures=names, **options)}


def axis_spike(n=20_000, d=400):
    """Return white rows of which one dimension is a thousand times as long."""
    rows = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    rows[:, 7] *= 1000
    return rows


def turned_spikes():
    """Return white rows with long directions that are no axes."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((8000, 200))
    axes = np.linalg.qr(rng.standard_normal((200, 3)))[0]
    return (rows + rows @ axes * [400, 100, 3000] @ axes.T).astype(np.float32)


def outlier_dimensions():
    """Return rows with a few dimensions that are hundreds of times the rest, off zero."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((8000, 200)) * np.arange(1, 201) ** -0.4
    rows[:, [3, 77, 150]] = rows[:, [3, 77, 150]] * [400, 900, 250] + [2000, -300, 10]
    return rows.astype(np.float32)


CLOUDS = [axis_spike, turned_spikes, outlier_dimensions]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_no_eigenvalue_comes_from_a_sample(cloud):
    # The smallest of 2,048 white rows of 400 dimensions are less than half those of all rows.
    rows = cloud()
    exact = np.linalg.eigvalsh(np.cov(rows.T.astype(np.float64)))[::-1]
    found = values_of(rows, ["isoscore", "effective-rank", "participation", "alpha"])
    assert found["effective-rank"] == pytest.approx(entropy_rank(exact), rel=1e-6)
    assert found["participation"] == pytest.approx(ratio(exact), rel=1e-6)
    isoscore = (ratio(exact) - 1) / (len(exact) - 1)
    assert found["isoscore"] == pytest.approx(isoscore, rel=1e-6)
    assert found["alpha"] == pytest.approx(slope(exact, len(rows)), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_order_of_the_rows_does_not_move_a_value(cloud):
    rows = cloud()
    other = rows[np.random.default_rng(3).permutation(len(rows))]
    names = [name for name in SPECTRAL if name != "effective-rank-debiased"]  # has halves
    assert values_of(other, names) == pytest.approx(values_of(rows, names), rel=1e-6)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_float32_rows_read_as_the_same_rows_in_float64(cloud):
    rows = cloud()[:6000]
    ids = np.repeat(np.arange(120), 50).astype(str)
    single, double = (
        measure(rows.astype(kind), document=ids, measures=SPECTRAL)
        for kind in (np.float32, np.float64)
    )
    for one, other in zip(single, double, strict=True):
        assert one.measure == other.measure
        assert one.value == pytest.approx(other.value, rel=1e-6)
        # Parts of groups are sketched in float32, which moves an interval by little of itself.
        assert one.low is not None and other.low is not None
        close = 0.05 * (other.high - other.low)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=close)


def test_directions_that_no_row_has_are_not_read_from_rounding():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 100)) @ rng.standard_normal((100, 256))
    ids = np.repeat([f"d{i}" for i in range(40)], 50)
    names = ["rankme", "effective-rank", "isoscore"]
    single, double = (
        {r.measure: r.value for r in measure(rows.astype(kind), document=ids, measures=names)}
        for kind in (np.float32, np.float64)
    )
    assert single == pytest.approx(double, rel=1e-5)
    assert single["rankme"] < 100.1


def test_small_eigenvalues_that_rows_do_have_stay():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((3000, 12))
    rows[:, :2] *= 1e4
    found = {r.measure: r.value for r in measure(rows, measures=["rankme"])}
    singular = np.linalg.svd(rows, compute_uv=False)
    share = singular / singular.sum() + 1e-7
    assert found["rankme"] == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-6)


def spread_of_alpha(viewed, long, along):
    """Return the standard error of alpha of rows, a fifth of which are long along a direction.

    Fewer long rows would be summed in float64.
    """
    rng = np.random.default_rng(5)
    names = np.repeat(np.arange(100), 30)
    basis = np.linalg.qr(rng.normal(size=(96, 96)))[0]
    root = np.arange(1, 97)[:, None] ** -0.375 * basis
    rows = rng.normal(size=(3000, 96)) @ root + 0.5 * (rng.normal(size=(100, 96)) @ root)[names]
    rows[::5] += long * along / np.linalg.norm(along) * rng.lognormal(0, 0.1, size=(600, 1))
    seen = viewed(Spectrum, rows.astype(np.float32), names.astype(str))
    assert seen.sketched == 24
    without = seen.values_without(lambda each: slope(each.values, each.count))
    return standard_error(slope(seen.values, seen.count), without, seen.sizes)


@pytest.mark.parametrize(
    "along", [np.eye(96)[3], np.cos(np.arange(96.0))], ids=["axis", "none"]
)
@pytest.mark.parametrize("long", [100, 1_000, 10_000])
def test_one_long_direction_takes_no_width_from_what_is_below_it(viewed, along, long):
    # all other axes are 1e-3 to 1e-9 of the longest; the slope begins at the fifth
    plain, below = (spread_of_alpha(viewed, size, along) for size in (0, long))
    # the 24 longest axes are others, and the rounding of float32 may widen it, not narrow it
    assert 0.7 * plain < below < 2 * plain
