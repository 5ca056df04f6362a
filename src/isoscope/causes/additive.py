"""An additive model of where rows point: mean + frequency band + position band, and its noise.

Least squares, so that a band is not charged for where its tokens stand. Only products of such
means are needed later, so a small table of products is kept, with the noise taken out twice:
the squared noise of every product, and whatever of the bands' differences from the mean is no
more than noise.
"""

from dataclasses import dataclass

import numpy as np

from isoscope.causes.cloud import CloudSums, design_of
from isoscope.measures.interval import LEAST_DOCUMENTS
from isoscope.types import Array

_RARE = 2.0234  # 99 % point of the Tracy-Widom law of order one
_NOTHING = 1e-9  # of the largest variance: bands less the mean have one line too many


@dataclass(frozen=True)
class Additive:
    """Lines are the mean, each frequency band less the mean, each position band less it."""

    lines: Array  # (1 + F + P, d) as fit, without what is only noise
    products: Array  # (1 + F + P, 1 + F + P) of the lines, the noise taken away
    uncleaned: Array  # likewise, of the lines with all their noise
    noise: Array  # (1 + F + P, 1 + F + P) variance of the lines, over all dimensions
    spread: Array  # (d,) share of the noise that each dimension has
    blocks: tuple[slice, slice]  # the lines of frequency bands, and those of position bands


@dataclass(frozen=True)
class Noise:
    """The noise of the lines, times the rows and over the variance of a row."""

    table: Array  # (1 + F + P, 1 + F + P)
    spheres: float  # in how many dimensions it lies


def fit(cloud: CloudSums, kept: Array, noise: Noise | None = None) -> Additive:
    """Return the model of a cloud over the dimensions kept.

    `noise` is that of a larger cloud, of which this one is a part.
    """
    whole, squares = cloud.total(), _LeastSquares.of(cloud, kept)
    known = squares.noise(cloud, kept) if noise is None else noise
    lines, variance = squares.lines, known.table * squares.own / whole.rows
    clean = np.eye(len(lines))  # (1 + F + P, 1 + F + P) takes away differences that are noise
    for block in squares.blocks[1:]:
        table = lines[block] @ lines[block].T
        clean[block, block] = _without_noise(table, variance[block, block], known.spheres)
    products = lines @ lines.T - variance
    spread = np.clip(whole.energy[kept] - lines[0] ** 2 * whole.rows, 0, None)
    return Additive(
        lines=clean @ lines,
        products=clean @ products @ clean.T,
        uncleaned=products,
        noise=clean @ variance @ clean.T,
        spread=spread / max(float(spread.sum()), 1e-300),
        blocks=squares.blocks[1:],
    )


def noise_of(cloud: CloudSums, kept: Array) -> Noise:
    """Return the noise of a cloud over the dimensions kept."""
    return _LeastSquares.of(cloud, kept).noise(cloud, kept)


@dataclass(frozen=True)
class _LeastSquares:
    """The lines as fitted by least squares, and what their noise is made of."""

    contrasts: Array  # (1 + F + P, F + P) lines = contrasts @ sums
    effects: Array  # (F + P, d)
    lines: Array  # (1 + F + P, d)
    plain: Array  # (1 + F + P, 1 + F + P) noise of the lines if rows were independent
    own: float  # variance of a row, over all dimensions
    blocks: tuple[slice, slice, slice]

    @classmethod
    def of(cls, cloud: CloudSums, kept: Array) -> "_LeastSquares":
        whole = cloud.total()
        sums, (f, p) = whole.units[:, kept], whole.crossed.shape
        design, inverse = whole.design
        contrasts, effects = _contrasts(whole.crossed) @ inverse, inverse @ sums
        left = float(whole.energy[kept].sum() - np.vdot(effects, sums))
        return cls(
            contrasts=contrasts,
            effects=effects,
            lines=contrasts @ sums,
            plain=contrasts @ design @ contrasts.T,
            own=max(left, 0.0) / max(whole.rows - (f + p - 1), 1.0),
            blocks=(slice(0, 1), slice(1, 1 + f), slice(1 + f, 1 + f + p)),
        )

    def noise(self, cloud: CloudSums, kept: Array) -> Noise:
        """Return the noise, from documents where there are enough of them."""
        rows, energy = cloud.crossed.sum(), cloud.energy[kept]
        table = self.plain.copy()
        spheres = float(np.sum(energy) ** 2 / max(np.sum(energy**2), 1e-300))
        if self.own > 0 and min(cloud.documents, cloud.groups) >= LEAST_DOCUMENTS:
            expected = design_of(cloud.crossed) @ self.effects
            left = self.contrasts @ (cloud.units[:, :, kept] - expected)
            left /= np.sqrt(self.own)  # (groups, 1 + F + P, d)
            for block in self.blocks:
                if table[block, block].max() > 0:
                    table[block, block] = _noise_of_documents(
                        left[:, block], table[block, block]
                    )
            spheres = min(spheres, _spheres(left[:, 0]))
        return Noise(table * rows, spheres)


def _contrasts(crossed: Array) -> Array:
    """Return the rows that give, of the effects, the mean and each band less the mean."""
    usual = crossed / crossed.sum()
    frequency, position = usual.sum(axis=1), usual.sum(axis=0)
    f, p = len(frequency), len(position)
    mean = np.concatenate([frequency, position])
    of_frequency = np.hstack([np.eye(f) - frequency, np.zeros((f, p))])
    of_position = np.hstack([np.zeros((p, f)), np.eye(p) - position])
    # A band may be all of one document: without it, nothing is known to set the band apart.
    of_frequency[frequency == 0] = 0
    of_position[position == 0] = 0
    return np.vstack([mean, of_frequency, of_position])


def _noise_of_documents(left: Array, plain: Array) -> Array:
    """Return the noise of some lines, from the residuals of every group of documents.

    Rows of a document are alike, so that this is more than the noise of independent rows. It
    is nowhere taken for less than it is on average: a band that only few groups have leaves
    hardly any residual.
    """
    groups = len(left)
    root, inverse = _roots(plain)
    flat = np.swapaxes(left, 0, 1).reshape(len(plain), -1)  # (lines, groups * d)
    table = flat @ flat.T * groups / (groups - 1)
    # in units of the noise of independent rows, none below the average
    times, kinds = np.linalg.eigh(inverse.T @ table @ inverse)
    times = np.maximum(times, max(float(times.mean()), 1.0))
    turned = root @ kinds
    return turned * times @ turned.T


def _spheres(left: Array) -> float:
    """Return in how many dimensions the noise lies: one over its mean squared cosine.

    The residuals of all groups add up to zero, which alone makes them a little alike.
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
    root, inverse = _roots(noise)
    if not root.size:
        return np.zeros_like(table)
    energy, kinds = np.linalg.eigh(inverse.T @ table @ inverse)
    kinds = kinds[:, energy > largest_of_noise(root.shape[1], spheres)]
    return root @ kinds @ kinds.T @ inverse.T


def _roots(noise: Array) -> tuple[Array, Array]:
    """Return R and S with R R' the noise and S' R = 1, (lines, rank) each."""
    size, axes = np.linalg.eigh(noise)
    there = size > _NOTHING * size.max()
    return axes[:, there] * np.sqrt(size[there]), axes[:, there] / np.sqrt(size[there])


def largest_of_noise(bands: int, spheres: float) -> float:
    """Return what the largest eigenvalue of pure noise exceeds once in a hundred times."""
    n, p = np.sqrt(max(spheres - 1, 1.0)), np.sqrt(bands)
    middle, scale = (n + p) ** 2, (n + p) * (1 / n + 1 / p) ** (1 / 3)
    return float((middle + _RARE * scale) / spheres)
