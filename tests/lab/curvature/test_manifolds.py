"""Manifolds of known curvature: closed forms against sums over points, and against by hand."""

from math import sqrt

import numpy as np
import pytest

from isoscope.lab.curvature.manifolds import (
    MANIFOLDS,
    Surface,
    biased_radii,
    expect,
    expect_shares,
    ratio_per_radius,
    zipf,
)

SURFACES = [Surface.of("parabola", 1), *(
    Surface.of(name, m) for name in ("paraboloid", "sphere") for m in (1, 2, 5)
)]  # fmt: skip
each_surface = pytest.mark.parametrize(
    "surface", SURFACES, ids=lambda s: f"{s.manifold.name}-{s.dimension}"
)


def ambient(surface, tangent, normal):
    return np.column_stack([tangent, normal])


def test_points_lie_on_their_manifold_and_in_their_ball():
    rng = np.random.default_rng(0)
    radii = np.full(500, 0.9)
    u, h = Surface.of("parabola", 7).draw(radii, rng)
    assert u.shape == (500, 1) and np.allclose(h, u[:, 0] ** 2)
    u, h = Surface.of("sphere", 3).draw(radii, rng)
    assert np.allclose((u**2).sum(1) + (1 - h) ** 2, 1)  # about the centre (0, 1)
    assert np.linalg.norm(u, axis=1).max() <= 0.9
    u, h = Surface.of("paraboloid", 4).draw(radii, rng)
    assert np.allclose(h, (u**2).sum(1) / 2)


@each_surface
@pytest.mark.parametrize("radius", [0.9, 0.1])
def test_closed_forms_are_the_means_of_many_points(surface, radius):
    rng = np.random.default_rng(3)
    u, h = surface.draw(np.full(400_000, radius), rng)
    seen = expect(surface, radius)
    # 1 %: the standard error of 400,000 points is at most 0.2 % of these means
    assert seen.tangent == pytest.approx((u**2).sum(1).mean(), rel=0.01)
    assert seen.height == pytest.approx(h.mean(), rel=0.01)
    assert seen.normal == pytest.approx((h**2).mean(), rel=0.01)


@each_surface
def test_the_curvature_of_the_record_is_that_of_the_manifold(surface):
    step = 1e-4  # second difference of the height along one direction
    height = float(surface.manifold.height(np.array([step**2]))[0])
    assert 2 * height / step**2 == pytest.approx(surface.manifold.curvature, rel=1e-6)


@each_surface
def test_to_leading_order_normal_energy_is_t4_and_the_ratio_is_c_t(surface):
    small = expect(surface, 1e-3)
    assert small.leading == pytest.approx(small.normal, rel=1e-5)
    assert ratio_per_radius(surface) * 1e-3 == pytest.approx(small.ratio, rel=1e-5)


def test_the_parabola_can_be_worked_out_by_hand():
    seen = expect(Surface.of("parabola", 1), 0.3)
    assert (seen.tangent, seen.height) == pytest.approx((0.03, 0.03))  # t^2 / 3
    assert seen.normal == pytest.approx(0.3**4 / 5)
    assert seen.ratio == pytest.approx(sqrt(3 / 5) * 0.3)


def test_a_whole_half_sphere_has_the_energy_of_its_integral():
    # dimension 2, radius 1: mean of (1 - sqrt(1 - s))^2 over s in [0, 1] is 1/6
    assert expect(Surface.of("sphere", 2), 1.0).normal == pytest.approx(1 / 6, rel=1e-5)


def test_frequent_types_have_smaller_neighbourhoods():
    shares = zipf(100)
    assert shares.sum() == pytest.approx(1) and shares[0] == pytest.approx(100 * shares[-1])
    radii = biased_radii(shares, 0.8, 0.5)
    assert radii[-1] == pytest.approx(0.8) and radii[0] == pytest.approx(0.08)
    assert (biased_radii(shares, 0.8, 0.0) == 0.8).all()


@pytest.mark.parametrize("name", MANIFOLDS)
def test_curvature_fades_from_view_of_tokens_but_not_of_their_energy(name):
    surface = Surface.of(name, 2)
    found = [expect_shares(surface, 1000, 0.8, bias) for bias in (0.0, 0.25, 0.5, 1.0)]
    energy, tokens = zip(*found, strict=True)
    one = expect(surface, 0.8)
    assert energy[0] == pytest.approx(one.normal / (one.normal + one.tangent))
    assert sorted(tokens, reverse=True) == list(tokens) and tokens[-1] < 0.1 * tokens[0]
    # rare types with wide neighbourhoods have most of the energy, whatever the bias
    assert energy[-1] > 0.4 * energy[0]
