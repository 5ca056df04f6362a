"""One draw of neighbourhoods: energies, variances and gradients of what was sampled.

Points come in pairs u and -u: the sample is symmetric, as the counter-example asks.
"""

from math import sqrt

import numpy as np

from isoscope.lab.curvature.manifolds import (
    Surface,
    biased_radii,
    expect,
    expect_shares,
    ratio_per_radius,
    zipf,
)
from isoscope.types import Array

ENERGIES = ("tangent-energy", "normal-energy", "normal-ratio", "normal-variance")
# Backward signals g of a linear map that reads the rows, all of mean square 1.
GRADIENTS = {"gradient-mixed": "mixed", "gradient-constant": "constant"}
QUANTITIES = (*ENERGIES, *GRADIENTS)
SHARES = ("normal-share", "token-normal-share")  # of energy, and the mean over tokens


def measure_radius(
    surface: Surface, radius: float, samples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the quantities of one neighbourhood."""
    tangent, normal = surface.draw(np.full(samples // 2, radius), rng)
    tangent, normal = np.concatenate([tangent, -tangent]), np.tile(normal, 2)
    along, across = float(np.vecdot(tangent, tangent).mean()), float((normal**2).mean())
    rows = np.column_stack([tangent, normal])
    values = np.linalg.eigvalsh(np.cov(rows.T))  # ascending
    found: dict[str, float] = dict(
        zip(ENERGIES, (along, across, sqrt(across / along), float(values[0])), strict=True)
    )
    for name, kind in GRADIENTS.items():
        found[name] = normal_share_of_gradient(tangent, normal, signal(kind, tangent, radius))
    return found


def signal(kind: str, tangent: Array, radius: float) -> Array:
    """Return the backward signal of each row.

    `constant` is 1, as of squared loss with target -1 at weights of zero. `mixed` is as much
    a constant as it goes with the first tangent direction.
    """
    if kind == "constant":
        return np.ones(len(tangent))
    m = tangent.shape[1]
    return (1 + sqrt(m + 2) / radius * tangent[:, 0]) / sqrt(2)


def normal_share_of_gradient(tangent: Array, normal: Array, backward: Array) -> float:
    """Return the normal share of the squared weight gradient, mean over rows of g x."""
    along = backward @ tangent / len(tangent)
    across = float(backward @ normal) / len(tangent)
    whole = float(along @ along) + across**2
    return across**2 / whole


def expect_radius(surface: Surface, radius: float) -> dict[str, float]:
    """Return the closed forms of `measure_radius`, exact for endless samples."""
    seen, m = expect(surface, radius), surface.dimension
    along = radius / sqrt(2 * (m + 2))  # of the mixed gradient
    across = seen.height / sqrt(2)
    least = min(seen.normal - seen.height**2, seen.tangent / m)  # the smallest eigenvalue
    values = (seen.tangent, seen.normal, seen.ratio, least)
    share = across**2 / (along**2 + across**2)
    return dict(zip(QUANTITIES, (*values, share, 1.0), strict=True))


def predict_radius(surface: Surface, radius: float) -> dict[str, float]:
    """Return the prediction to leading order: tangent t^2, normal t^4, their ratio c t.

    The bound of the preprint says the same of every gradient: a normal share of order t^2.
    """
    seen, m = expect(surface, radius), surface.dimension
    height = surface.manifold.curvature * m * radius**2 / (2 * (m + 2))
    slope = height**2 * (m + 2) / radius**2  # normal over tangent energy of a mixed gradient
    return {
        "tangent-energy": seen.tangent,
        "normal-energy": seen.leading,
        "normal-ratio": ratio_per_radius(surface) * radius,
        "normal-variance": seen.leading - height**2,
        "gradient-mixed": slope,
        "gradient-constant": slope,
    }


def measure_bias(
    surface: Surface,
    radius: float,
    bias: float,
    sizes: tuple[int, int],
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return the normal shares of tokens drawn by frequency; sizes are types and tokens."""
    types, tokens = sizes
    shares = zipf(types)
    drawn = rng.choice(types, tokens, p=shares)
    tangent, normal = surface.draw(biased_radii(shares, radius, bias)[drawn], rng)
    along, across = np.vecdot(tangent, tangent), normal**2
    whole = float(across.sum()) / float((along + across).sum())
    return dict(zip(SHARES, (whole, float((across / (along + across)).mean())), strict=True))


def expect_bias(surface: Surface, radius: float, bias: float, types: int) -> dict[str, float]:
    """Return the closed forms of `measure_bias`."""
    return dict(zip(SHARES, expect_shares(surface, types, radius, bias), strict=True))
