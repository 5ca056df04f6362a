"""Tangent and normal variance of token types: the slow definition, laws and planted truth."""

import numpy as np
import pytest

from isoscope.accumulate import NeighbourhoodsSummary
from isoscope.errors import TooFewRowsError
from isoscope.lab.curvature.manifolds import Surface
from isoscope.lab.curvature.neighbourhoods import (
    Neighbourhoods,
    band_name,
    band_numbers,
    measured_values,
)


def summarise(rows, seed=0):
    """Return rows, (types, m, d), as a summary with documents of their own."""
    types, kept, width = rows.shape
    draw = np.random.default_rng(seed)
    keys = draw.integers(0, 2**63, types * kept).astype(np.uint64)
    return NeighbourhoodsSummary(
        np.arange(types), np.repeat(np.arange(types), kept), keys, rows.reshape(-1, width), kept
    )


def planted(rows, shares=None, rank=2, seed=0):
    shares = np.geomspace(0.001, 0.1, len(rows)) if shares is None else shares
    return Neighbourhoods.of(summarise(rows, seed), shares, rank)


def slow_split(rows, rank):
    """Return tangent and normal variance of one type, by SVD of each half."""
    halves = [rows[0::2], rows[1::2]]
    tangents, normals = [], []
    for one, other in (halves, halves[::-1]):
        _, _, axes = np.linalg.svd(other - other.mean(0), full_matrices=False)
        centred = one - one.mean(0)
        tangent = ((centred @ axes[:rank].T) ** 2).sum() / (len(one) - 1)
        tangents.append(tangent)
        normals.append((centred**2).sum() / (len(one) - 1) - tangent)
    return tangents, normals


def test_variances_are_those_of_the_slow_definition():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((7, 16, 9)) * rng.uniform(0.1, 3, 9) + 50
    found = planted(rows, rank=3)
    values = found.measure()
    for number, each in enumerate(rows):
        tangents, normals = slow_split(each, 3)
        assert values.tangent[number] == pytest.approx(np.mean(tangents), rel=1e-9)
        assert values.normal[number] == pytest.approx(np.mean(normals), rel=1e-9)
        quarter, other = each[1::4] - each[1::4].mean(0), each[0::2] - each[0::2].mean(0)
        _, _, axes = np.linalg.svd(other, full_matrices=False)
        assert values.quarters[1, number] == pytest.approx((quarter**2).sum() / 3, rel=1e-9)
        along = ((quarter @ axes[:3].T) ** 2).sum() / 3
        assert values.quarter_tangents[1, number] == pytest.approx(along, rel=1e-9)
        distance = np.linalg.norm(each - each.mean(0), axis=1).mean() * np.sqrt(16 / 15)
        assert values.distances[number] == pytest.approx(distance, rel=1e-9)


def test_without_a_group_they_are_those_of_the_other_rows():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((4, 20, 6)) * [5, 2, 1, 1, 1, 1]
    found = planted(rows, rank=1)
    group = int(found.groups[0, 3])
    values = found.measure(group)
    for number, each in enumerate(rows):
        kept = found.groups[number] != group
        tangents = []
        for half in (0, 1):
            mine, other = (each[i::2][kept[i::2]] for i in (half, 1 - half))
            _, _, axes = np.linalg.svd(other - other.mean(0), full_matrices=False)
            centred = mine - mine.mean(0)
            tangents.append(((centred @ axes[0]) ** 2).sum() / (len(mine) - 1))
        assert values.tangent[number] == pytest.approx(np.mean(tangents), rel=1e-9)


def test_an_isotropic_neighbourhood_has_a_tangent_share_of_rank_over_width():
    rows = np.random.default_rng(3).standard_normal((300, 32, 40))
    means = planted(rows, rank=4).measure().means()
    assert means["tangent-share"] == pytest.approx(4 / 40, rel=0.02)  # 300 types: sd 1 %
    assert means["tangent-variance"] + means["normal-variance"] == pytest.approx(40, rel=0.01)


def curved(rng, types, kept, noise):
    """Return types on a paraboloid of dimension 2 in 12 dimensions, and their radii."""
    radii = np.geomspace(0.02, 0.6, types)
    surface = Surface.of("paraboloid", 2)
    rows = np.empty((types, kept, 12))
    for number, radius in enumerate(radii):
        turn, _ = np.linalg.qr(rng.standard_normal((12, 12)))
        tangent, normal = surface.draw(np.full(kept, radius), rng)
        flat = np.column_stack([tangent, normal, np.zeros((kept, 9))])
        rows[number] = (flat + noise * rng.standard_normal(flat.shape)) @ turn
    return rows, radii


def test_curvature_reads_an_exponent_of_two_and_scale_alone_one():
    rng = np.random.default_rng(4)
    rows, radii = curved(rng, 80, 32, 0.0)
    shares = 1e-3 * radii**-1.0
    exact = planted(rows, shares).measure().over_types()
    assert exact["tangent-normal"] == pytest.approx(2.0, abs=0.1)
    assert exact["frequency-tangent"] == pytest.approx(-2.0, abs=0.1)
    assert exact["frequency-normal"] == pytest.approx(-4.0, abs=0.2)
    cloud = rng.standard_normal((80, 32, 12)) * ([3.0, 3.0] + [1.0] * 10)
    only_scale = planted(cloud * radii[:, None, None], shares).measure().over_types()
    assert only_scale["tangent-normal"] == pytest.approx(1.0, abs=0.05)


def test_noise_that_has_the_same_size_everywhere_hides_curvature():
    rng = np.random.default_rng(5)
    rows, _ = curved(rng, 80, 32, 0.05)
    shares = np.geomspace(1e-3, 1e-1, 80)
    assert planted(rows, shares).measure().over_types()["tangent-normal"] < 1


def test_the_exponent_is_not_flattened_by_noise_in_the_variances():
    """Types that differ little: a plain slope falls towards zero, that of quarters does not."""
    rng = np.random.default_rng(6)
    scales = np.exp(rng.normal(0, 0.25, 1500))
    rows = rng.standard_normal((1500, 16, 6)) * [3, 1, 1, 1, 1, 1] * scales[:, None, None]
    shares = np.geomspace(1e-4, 1e-2, 1500)
    values = planted(rows, shares, rank=1).measure()
    x, y = np.log(values.tangent), np.log(values.normal)
    plain = np.cov(x, y)[0, 1] / np.var(x, ddof=1)
    found = values.over_types()["tangent-normal"]
    assert plain < 0.75 and found == pytest.approx(1.0, abs=0.1)


def test_distance_and_frequency_correlate_as_planted():
    rng = np.random.default_rng(7)
    shares = np.geomspace(1e-4, 1e-1, 60)
    rows = rng.standard_normal((60, 32, 30)) * (2 - 0.1 * np.log(shares / 1e-4))[:, None, None]
    found = planted(rows, shares).measure().over_types()
    assert found["frequency-distance-types"] < -0.97


def test_intervals_over_documents_hold_the_truth():
    """With 95 % intervals, fewer than 32 hits of 40 have a chance of 1e-3."""
    hits = 0
    shares = np.geomspace(2e-3, 3e-3, 6)  # one band
    for seed in range(40):
        rows = np.random.default_rng(seed).standard_normal((6, 16, 10))
        found = {
            each.measure: each
            for each in measured_values(planted(rows, shares, seed=seed))
            if not each.group
        }
        each = found["normal-variance"]
        hits += each.low <= 8.0 <= each.high  # 10 dimensions, 2 of them tangent
    assert hits >= 32


def test_bands_are_half_decades_of_frequency():
    shares = np.array([0.001, 0.0031, 0.0033, 0.01, 0.5])
    assert band_numbers(shares).tolist() == [-6, -6, -5, -4, -1]
    assert band_name(-6) == "frequency 1.0e-03 to 3.2e-03"


def test_types_of_one_frequency_have_no_slope_over_it():
    with pytest.raises(TooFewRowsError, match="the same frequency"):
        planted(np.random.default_rng(0).standard_normal((5, 16, 3)), np.full(5, 0.1))


def test_two_types_are_too_few():
    with pytest.raises(TooFewRowsError, match="at least 3 types") as caught:
        planted(np.ones((2, 8, 3)))
    assert caught.value.slug == "curvature-types"
