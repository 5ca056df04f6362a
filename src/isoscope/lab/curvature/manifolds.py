"""Manifolds of known curvature: points of a small neighbourhood, and what is known of them.

Every manifold is a graph over its tangent plane at one point: x(u) = (u, h(u)), u in a ball of
radius t of the plane and h the height above it. So u is the tangent part of a row and h its
normal part, exactly and not only to leading order.
"""

from collections.abc import Callable
from functools import cache
from math import sqrt

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.types import Array

NODES = 200  # of the quadrature over the distance from the centre


@dataclass(frozen=True)
class Manifold:
    """A graph over its tangent plane whose height depends on the distance alone."""

    name: str
    formula: str
    curvature: float  # in every direction, at the point of contact
    height: Callable[[Array], Array]  # of the squared distance from the centre
    line: bool = False  # whether it is a curve, whatever the dimension
    reach: float | None = None  # the largest radius; None where there is none


def _below_sphere(squares: Array) -> Array:
    """Return 1 - sqrt(1 - s), without the cancellation at small s."""
    return squares / (1 + np.sqrt(np.maximum(1 - squares, 0.0)))


MANIFOLDS = {
    each.name: each
    for each in (
        Manifold("parabola", "(u, u²)", 2.0, lambda squares: squares, line=True),
        Manifold("paraboloid", "(u, |u|²/2)", 1.0, lambda squares: squares / 2),
        Manifold("sphere", "(u, 1 - √(1 - |u|²))", 1.0, _below_sphere, reach=1.0),
    )
}


@dataclass(frozen=True)
class Surface:
    """A manifold with its dimension."""

    manifold: Manifold
    dimension: int

    @classmethod
    def of(cls, name: str, dimension: int) -> "Surface":
        """Return the manifold of a name; a curve has dimension 1."""
        manifold = MANIFOLDS[name]
        return cls(manifold, 1 if manifold.line else dimension)

    def draw(self, radii: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return tangent and normal parts, (n, m) and (n,), of one point per radius.

        Points lie evenly in the ball of their radius.
        """
        directions = rng.standard_normal((len(radii), self.dimension))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = radii * rng.random(len(radii)) ** (1 / self.dimension)
        tangent = directions * lengths[:, None]
        return tangent, self.manifold.height(lengths**2)


# --- closed forms -------------------------------------------------------------------------
@dataclass(frozen=True)
class Expected:
    """Means over the ball of one radius."""

    tangent: float  # of |u|^2
    height: float  # of h
    normal: float  # of h^2
    leading: float  # of h^2, to leading order of the radius

    @property
    def ratio(self) -> float:
        """The root of normal energy over tangent energy."""
        return sqrt(self.normal / self.tangent)


def expect(surface: Surface, radius: float) -> Expected:
    """Return the energies of a neighbourhood.

    With curvature c in each of m directions, h = c |u|^2 / 2 to leading order, and the mean
    of |u|^k over the ball is m t^k / (m + k).

    >>> found = expect(Surface.of("parabola", 1), 0.5)
    >>> round(found.tangent, 6), round(found.normal, 6)
    (0.083333, 0.0125)
    """
    m, t = surface.dimension, radius
    nodes, weights = _radial(m)
    heights = surface.manifold.height((t * nodes) ** 2)
    return Expected(
        tangent=m * t**2 / (m + 2),
        height=float(weights @ heights),
        normal=float(weights @ heights**2),
        leading=surface.manifold.curvature**2 * m * t**4 / (4 * (m + 4)),
    )


def ratio_per_radius(surface: Surface) -> float:
    """Return the constant c of the prediction that normal over tangent is c t.

    >>> round(ratio_per_radius(Surface.of("parabola", 1)), 6)  # sqrt(t^4 / 5 / (t^2 / 3)) / t
    0.774597
    """
    m = surface.dimension
    return surface.manifold.curvature / 2 * sqrt((m + 2) / (m + 4))


@cache
def _radial(dimension: int) -> tuple[Array, Array]:
    """Return distances and weights whose sum is a mean over the unit ball."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    inner = (nodes + 1) / 2
    density = weights / 2 * dimension * inner ** (dimension - 1)
    return inner, density


# --- frequency ----------------------------------------------------------------------------
def zipf(types: int) -> Array:
    """Return the share of tokens of each type, the most frequent first: one over the rank."""
    shares = 1 / np.arange(1, types + 1)
    return shares / shares.sum()


def biased_radii(shares: Array, radius: float, bias: float) -> Array:
    """Return the radius of each type: that of the rarest, times (share / least share)^-bias.

    >>> biased_radii(np.array([0.8, 0.2]), 1.0, 0.5).tolist()
    [0.5, 1.0]
    """
    return radius * (shares / shares.min()) ** -bias


def expect_shares(
    surface: Surface, types: int, radius: float, bias: float
) -> tuple[float, float]:
    """Return two normal shares of tokens, types drawn by frequency.

    That of the energy of all tokens, which the rare types with their wide neighbourhoods
    dominate; and the mean over tokens of h^2 / (|u|^2 + h^2), to which each adds as much.
    """
    shares = zipf(types)
    nodes, weights = _radial(surface.dimension)
    along = (biased_radii(shares, radius, bias)[:, None] * nodes) ** 2  # (types, nodes)
    across = surface.manifold.height(along) ** 2
    tangent, normal = (float(shares @ (each @ weights)) for each in (along, across))
    return normal / (tangent + normal), float(shares @ (across / (along + across) @ weights))
