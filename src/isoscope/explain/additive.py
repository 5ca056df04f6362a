"""An additive model of where rows point: mean + frequency band + position band, and its noise.

Least squares, so that a band is not charged for where its tokens stand. All that is asked of
it later are products of such means, so a small table of products is all that is kept, with
the noise taken out twice: the squared noise of every product, and whatever of the bands'
differences from the mean is no more than noise.
"""

from dataclasses import dataclass

import numpy as np

from isoscope.explain.cloud import Cloud
from isoscope.measure.interval import LEAST_DOCUMENTS
from isoscope.types import Array

_RARE = 2.0234  # 99 % point of the Tracy-Widom law of order one


@dataclass(frozen=True)
class Additive:
    """Lines are the mean, each frequency band less the mean, each position band less it."""

    lines: Array  # (1 + F + P, d) as fitted, what is only noise left out
    products: Array  # (1 + F + P, 1 + F + P) of the lines, the noise taken away
    noise: Array  # (1 + F + P, 1 + F + P) variance of the lines, over all dimensions
    spread: Array  # (d,) share of the noise that each dimension has
    frequencies: int

    @property
    def blocks(self) -> tuple[slice, slice]:
        """The lines of frequency bands, and those of position bands."""
        split = 1 + self.frequencies
        return slice(1, split), slice(split, len(self.products))


def fitted(cloud: Cloud, kept: Array) -> Additive:
    """Return the model of a cloud over the dimensions kept."""
    whole = cloud.total()
    design, sums, energy = whole.design, whole.units[:, kept], whole.energy[kept]
    inverse = np.linalg.pinv(design, hermitian=True)
    shape = whole.crossed.shape
    asked = _asked(whole.crossed) @ inverse  # (1 + F + P, F + P)
    lines, effects = asked @ sums, inverse @ sums
    free = max(whole.rows - (sum(shape) - 1), 1.0)
    own = max(float(energy.sum() - np.vdot(effects, sums)), 0.0) / free
    plain = asked @ design @ asked.T
    blocks = slice(0, 1), slice(1, 1 + shape[0]), slice(1 + shape[0], 1 + sum(shape))
    pulled, spheres = np.ones(len(plain)), float(np.sum(energy) ** 2 / np.sum(energy**2))
    if own > 0 and min(cloud.documents, cloud.groups) >= LEAST_DOCUMENTS:
        left = asked @ (cloud.units[:, :, kept] - cloud.designs @ effects)  # (groups, lines, d)
        pulled = _pulled(left, own * plain, blocks)
        spheres = min(spheres, _spheres(left[:, 0]))
    noise = own * plain * np.sqrt(np.outer(pulled, pulled))
    clean = np.eye(len(plain))
    for block in blocks[1:]:
        table = lines[block] @ lines[block].T
        clean[block, block] = _without_noise(table, noise[block, block], spheres)
    products = clean @ (lines @ lines.T - noise) @ clean.T
    spread = np.clip(energy - lines[0] ** 2 * whole.rows, 0, None)
    spread = spread / spread.sum() if spread.sum() else np.zeros(len(energy))
    return Additive(clean @ lines, products, clean @ noise @ clean.T, spread, shape[0])


def _asked(crossed: Array) -> Array:
    """Return what is asked of the effects: the mean, and each band less the mean."""
    usual = crossed / crossed.sum()
    frequency, position = usual.sum(axis=1), usual.sum(axis=0)
    f, p = len(frequency), len(position)
    mean = np.concatenate([frequency, position])
    of_frequency = np.hstack([np.eye(f) - frequency, np.zeros((f, p))])
    of_position = np.hstack([np.zeros((p, f)), np.eye(p) - position])
    return np.vstack([mean, of_frequency, of_position])


def _pulled(left: Array, plain: Array, blocks: tuple[slice, ...]) -> Array:
    """Return how many times the noise is what it would be if rows were independent.

    Rows of a document are alike, so what a group of documents leaves over is more than its
    rows would. One figure for the mean, one for each kind of band: a band that only few
    groups have would leave nothing over by itself.
    """
    groups = len(left)
    table = np.einsum("gad,gbd->ab", left, left) * groups / (groups - 1)
    times = np.ones(len(plain))
    for block in blocks:
        here = plain[block, block]
        rank = np.linalg.matrix_rank(here, hermitian=True)
        if rank:
            inverse = np.linalg.pinv(here, hermitian=True, rcond=1e-9)
            times[block] = max(float(np.vdot(inverse, table[block, block])) / rank, 1.0)
    return times


def _spheres(left: Array) -> float:
    """Return in how many dimensions the noise lies: one over its mean squared cosine.

    What groups leave over adds up to zero, which alone makes them a little alike.
    """
    groups = len(left)
    units = left / np.maximum(np.linalg.norm(left, axis=1), 1e-300)[:, None]
    cosines = (units @ units.T)[~np.eye(groups, dtype=bool)]
    alike = float(np.mean(cosines**2)) - 1 / (groups - 1) ** 2
    return 1 / max(alike, 1e-9)


def _without_noise(table: Array, noise: Array, spheres: float) -> Array:
    """Return the projection onto differences between bands that are more than noise.

    In units of the noise, differences that are not there have the largest eigenvalue of a
    Wishart matrix, whose law is known (Johnstone 2001); what exceeds its 99 % point stays.
    """
    size, axes = np.linalg.eigh(noise)
    there = size > 1e-9 * max(float(size.max()), 1e-300)
    if not there.any() or spheres <= 1:
        return np.zeros_like(table) if not there.any() else np.eye(len(table))
    root = axes[:, there] * np.sqrt(size[there])
    inverse = axes[:, there] / np.sqrt(size[there])
    energy, kinds = np.linalg.eigh(inverse.T @ table @ inverse)
    kinds = kinds[:, energy > largest(int(there.sum()), spheres)]
    return root @ kinds @ kinds.T @ inverse.T


def largest(bands: int, spheres: float) -> float:
    """Return what the largest eigenvalue of pure noise exceeds once in a hundred times."""
    n, p = np.sqrt(max(spheres - 1, 1e-9)), np.sqrt(bands)
    middle, scale = (n + p) ** 2, (n + p) * (1 / n + 1 / p) ** (1 / 3)
    return float((middle + _RARE * scale) / spheres)
