"""Subspaces and what they hold of a cloud: its energy, and IsoScore* of what is left.

All are functions of the mean and the scatter, so that any number of subspaces can be looked at
once the rows are gone. Random ones are drawn in the eigenbasis of the scatter, where products
are sums over eigenvalues: a uniformly random subspace is one in every basis.
"""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import UndefinedError
from isoscope.types import Array

N = TypeVar("N", float, Array)
_ROOM = 1 << 22  # numbers that are drawn at once
_ROUNDING = 1e-9  # of a trace: less than that is nothing
_DRAWS = 0x74616E67  # so that these draws and other samples of a seed differ


def isoscore_star_of(trace: N, squares: N, dimensions: int, zeta: float) -> N:
    """Return IsoScore* from tr C and |C|^2, shrunk towards (tr C / dimensions) I.

        IsoScore* = (PR - 1) / (d - 1),  PR = t^2 / ((1 - z)^2 f + (2 z - z^2) t^2 / d)

    The multiple of the identity makes it free of scale; it lives in as many dimensions as C.
    """
    if dimensions < 2:
        raise UndefinedError(
            f"IsoScore* needs at least 2 dimensions, got {dimensions}",
            hint="remove fewer directions: lower the rank",
            slug="one-dimension",
        )
    shrunk = (1 - zeta) ** 2 * squares + (2 * zeta - zeta**2) * trace**2 / dimensions
    return (trace**2 / shrunk - 1) / (dimensions - 1)


def complement(basis: Array) -> Array:
    """Return an orthonormal basis of what a subspace leaves, (d, d - k)."""
    return np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :]


@dataclass(frozen=True)
class Cloud:
    """A cloud as its mean and scatter tell it."""

    rows: float
    mean: Array  # (d,)
    scatter: Array  # (d, d) about the mean

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.mean)

    def share(self, basis: Array) -> float:
        """Return the share of the energy sum |g|^2, about zero, that lies in a subspace."""
        whole = float(np.trace(self.scatter) + self.rows * self.mean @ self.mean)
        off = basis.T @ self.mean
        inside = np.einsum("dk,dk->", basis, self.scatter @ basis) + self.rows * off @ off
        if whole <= 0:
            raise no_energy()
        return float(inside) / whole

    def score(self, zeta: float) -> float:
        """Return IsoScore* of the cloud."""
        return _score(self.scatter, zeta)

    def rise(self, basis: Array, zeta: float) -> float:
        """Return by how much IsoScore* rises once a subspace is removed.

        What is left is read in its own d - k dimensions, so that it is 0 of a white cloud.
        """
        rest = complement(basis)
        left = rest.T @ self.scatter @ rest
        _refuse_nothing(np.trace(left), np.trace(self.scatter))
        return _score(left, zeta) - self.score(zeta)


def _refuse_nothing(left: Array, whole: Array | float) -> None:
    """Raise where nothing but rounding is left of a trace."""
    if np.min(left) <= _ROUNDING * whole:
        raise no_energy()


def _score(scatter: Array, zeta: float) -> float:
    trace = float(np.trace(scatter))
    if trace <= 0:
        raise no_energy()
    squares = float(np.einsum("ij,ij->", scatter, scatter))
    return isoscore_star_of(trace, squares, len(scatter), zeta)


def no_energy() -> UndefinedError:
    """Return the error for gradients that are all zero, or all inside of what is removed."""
    return UndefinedError(
        "a share of energy needs gradients that are not zero, got zero",
        hint="nothing of this site reaches the loss, or all of it lies in the proxy; choose "
        "another site, or a lower rank",
        slug="no-gradient",
    )


@dataclass(frozen=True)
class Draws:
    """What drawn subspaces hold of the energy, and how much IsoScore* rises without each."""

    shares: Array  # (n,)
    rises: Array  # (n,)


def gaussian(width: int, rank: int, number: int, seed: int) -> Iterator[Array]:
    """Yield random matrices, (n, width, rank), whose columns span uniform subspaces."""
    rng = np.random.default_rng([_DRAWS, seed, width, rank])
    step = max(1, _ROOM // (width * rank))
    for start in range(0, number, step):
        yield rng.normal(size=(min(step, number - start), width, rank))


def draw_random(cloud: Cloud, rank: int, number: int, zeta: float, seed: int) -> Draws:
    """Return what uniformly random subspaces of a rank hold: exchangeable with any fixed one.

    With G random and L the eigenvalues, the subspace is G (G'G)^-1/2, and
    tr A = tr((G'G)^-1 G'LG), A = Q'SQ.
    """
    values, vectors = np.linalg.eigh(cloud.scatter)
    values = np.maximum(values, 0.0)
    shares, rises = zip(
        *(
            _look(cloud, values, vectors.T @ cloud.mean, None, each, zeta)
            for each in gaussian(cloud.width, rank, number, seed)
        ),
        strict=True,
    )
    return Draws(np.concatenate(shares), np.concatenate(rises))


def draw_complement(cloud: Cloud, basis: Array, number: int, zeta: float, seed: int) -> Draws:
    """Return what random subspaces of the complement hold, of the same rank as the subspace."""
    check_complement(cloud.width, basis.shape[1])
    rest = complement(basis)
    values, vectors = np.linalg.eigh(rest.T @ cloud.scatter @ rest)
    values = np.maximum(values, 0.0)
    axes = rest @ vectors  # (d, d - k)
    cross = axes.T @ cloud.scatter @ basis  # what ties the complement to the subspace
    shares, rises = zip(
        *(
            _look(cloud, values, axes.T @ cloud.mean, cross, each, zeta)
            for each in gaussian(len(values), basis.shape[1], number, seed)
        ),
        strict=True,
    )
    return Draws(np.concatenate(shares), np.concatenate(rises))


def check_complement(width: int, rank: int) -> None:
    """Refuse controls of the complement where it has too few dimensions for them."""
    if 2 * rank > width:
        raise UndefinedError(
            f"controls of the complement need a rank of at most {width // 2}, got {rank}",
            hint="lower the rank to half of the width; random controls have no such limit",
            slug="tangent-rank",
        )


def _look(
    cloud: Cloud,
    values: Array,
    mean: Array,
    cross: Array | None,
    drawn: Array,
    zeta: float,
) -> tuple[Array, Array]:
    """Return shares and rises of subspaces drawn as (n, m, k) in a basis of eigenvectors.

    `values` and `mean` are those of the m axes, and `cross` (m, j) what of the scatter ties
    them to other axes.
    """
    rank = drawn.shape[2]
    turned = drawn.transpose(0, 2, 1)  # (n, k, m)
    gram = turned @ drawn  # (n, k, k)
    along = np.linalg.solve(gram, turned @ (values[:, None] * drawn))  # similar to A
    squared = turned @ (np.square(values)[:, None] * drawn)
    if cross is not None:
        tied = turned @ cross  # (n, k, j)
        squared = squared + tied @ tied.transpose(0, 2, 1)
    held = np.einsum("nkk->n", along)
    trace = float(np.trace(cloud.scatter))
    squares = float(np.einsum("ij,ij->", cloud.scatter, cloud.scatter))
    left = squares - 2 * np.einsum("nkk->n", np.linalg.solve(gram, squared))
    left += np.einsum("nij,nji->n", along, along)
    seen = turned @ mean  # (n, k)
    level = np.einsum("nk,nk->n", seen, np.linalg.solve(gram, seen[..., None])[..., 0])
    whole = trace + cloud.rows * cloud.mean @ cloud.mean
    _refuse_nothing(trace - held, trace)
    left_over = isoscore_star_of(trace - held, left, cloud.width - rank, zeta)
    score = isoscore_star_of(trace, squares, cloud.width, zeta)
    return (held + cloud.rows * level) / whole, left_over - score


def chance(value: float, drawn: Array) -> float:
    """Return the p-value of a value against those of random subspaces, itself among them.

    >>> chance(0.9, np.array([0.1, 0.95, 0.2]))
    0.5
    """
    return (1 + int(np.count_nonzero(drawn >= value))) / (1 + len(drawn))
