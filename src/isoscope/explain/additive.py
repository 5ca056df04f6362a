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
_NOTHING = 1e-9  # of the largest variance: bands less the mean have one line too many


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
    noise, spheres = own * plain, float(np.sum(energy) ** 2 / np.sum(energy**2))
    if own > 0 and min(cloud.documents, cloud.groups) >= LEAST_DOCUMENTS:
        left = asked @ (cloud.units[:, :, kept] - cloud.designs @ effects)  # (groups, lines, d)
        for block in blocks:
            if noise[block, block].max() > 0:
                noise[block, block] = _as_documents(left[:, block], noise[block, block])
        spheres = min(spheres, _spheres(left[:, 0]))
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


def _as_documents(left: Array, plain: Array) -> Array:
    """Return the noise of some lines, from what every group of documents leaves over of them.

    Rows of a document are alike, so that this is more than the noise of independent rows. It
    is nowhere taken for less than it is on average: of a band that only few groups have,
    hardly anything is left over.
    """
    groups = len(left)
    size, axes = np.linalg.eigh(plain)
    there = size > _NOTHING * size.max()
    root, inverse = axes[:, there] * np.sqrt(size[there]), axes[:, there] / np.sqrt(size[there])
    table = np.einsum("gad,gbd->ab", left, left) * groups / (groups - 1)
    times, kinds = np.linalg.eigh(inverse.T @ table @ inverse)
    times = np.maximum(times, max(float(times.mean()), 1.0))
    turned = root @ kinds
    return turned * times @ turned.T


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
    there = size > _NOTHING * size.max()
    if not there.any():
        return np.zeros_like(table)
    root = axes[:, there] * np.sqrt(size[there])
    inverse = axes[:, there] / np.sqrt(size[there])
    energy, kinds = np.linalg.eigh(inverse.T @ table @ inverse)
    kinds = kinds[:, energy > largest(int(there.sum()), spheres)]
    return root @ kinds @ kinds.T @ inverse.T


def largest(bands: int, spheres: float) -> float:
    """Return what the largest eigenvalue of pure noise exceeds once in a hundred times."""
    n, p = np.sqrt(max(spheres - 1, 1.0)), np.sqrt(bands)
    middle, scale = (n + p) ** 2, (n + p) * (1 / n + 1 / p) ** (1 / 3)
    return float((middle + _RARE * scale) / spheres)
