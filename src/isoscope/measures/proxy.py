"""The tangent proxy: a few orthonormal directions that hold most of what activations do."""

from typing import Literal, get_args

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, UndefinedError
from isoscope.types import Array

Method = Literal["pca", "semi-nmf"]
METHODS: tuple[Method, ...] = get_args(Method)
RANK = 16  # by default, and at most a quarter of the width
STEPS = 500  # of semi-NMF at most
ENOUGH = 1e-7  # relative fall of its error from which on it has converged
_TINY = 1e-12
_BEGINS = 0x6E6D66  # so that draws of one seed differ


@dataclass(frozen=True)
class Proxy:
    """Orthonormal directions, the mean of the activations, and the variance along each."""

    basis: Array  # (d, k)
    centre: Array  # (d,)
    shares: Array  # (k,) of the variance of the activations

    @property
    def rank(self) -> int:
        """How many directions there are."""
        return self.basis.shape[1]


def fit_pca(
    mean: Array,
    scatter: Array,
    rows: int,
    *,
    rank: int | None = None,
    explained: float | None = None,
    site: str = "",
) -> Proxy:
    """Return the directions of the largest variance, about the mean.

    As many as `rank` says, or the fewest that hold the share `explained` of the variance.
    """
    values, vectors = np.linalg.eigh(scatter)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    whole = float(values.sum())
    if whole <= 0:
        raise _no_variance(site)
    if explained is not None:
        held = np.cumsum(values) / whole
        rank = int(np.searchsorted(held, explained * (1 - 1e-12))) + 1
    rank = check_rank(rank, len(mean), rows, site)
    return Proxy(_signed(vectors[:, :rank]), mean, values[:rank] / whole)


def fit_semi_nmf(
    sample: Array,
    mean: Array,
    scatter: Array,
    rows: int,
    *,
    rank: int | None = None,
    seed: int = 0,
    site: str = "",
) -> Proxy:
    """Return the span of the factors of a semi-non-negative factorisation, orthonormal.

    Of a sample of the rows, as they are: the mean is one of the things that factors explain.
    """
    rank = check_rank(rank, len(mean), min(rows, len(sample)), site)
    factors, _, _ = semi_nmf(sample, rank, seed=seed)
    basis, triangle = np.linalg.qr(factors)
    if np.abs(np.diag(triangle)).min() <= _TINY * np.abs(triangle).max():
        raise UndefinedError(
            f"expected {rank} different factors at {site}, got fewer",
            hint="lower --rank, or give more documents",
            slug="tangent-rank",
        )
    along = np.einsum("dk,dk->k", basis, scatter @ basis)
    order = np.argsort(-along)
    return Proxy(_signed(basis[:, order]), mean, along[order] / float(np.trace(scatter)))


def semi_nmf(rows: Array, rank: int, *, seed: int = 0) -> tuple[Array, Array, list[float]]:
    """Return factors F (d, k), weights G (n, k) >= 0, and the error of every step.

    rows = G F' + error. Updates of Ding, Li and Jordan (2010), which never raise the error:

        F = X'G (G'G)^-1,   G <- G sqrt(((XF)+ + G (F'F)-) / ((XF)- + G (F'F)+))
    """
    rng = np.random.default_rng([_BEGINS, seed])
    rows = np.asarray(rows, dtype=np.float64)
    weights = _begin(rows, rank, rng)
    total = float(np.square(rows).sum())
    errors: list[float] = []
    factors = np.zeros((rows.shape[1], rank))
    for _ in range(STEPS):
        factors = np.linalg.lstsq(weights.T @ weights, weights.T @ rows, rcond=None)[0].T
        across, gram = rows @ factors, factors.T @ factors
        errors.append(
            total
            - 2 * float((across * weights).sum())
            + float(((weights @ gram) * weights).sum())
        )
        if len(errors) > 1 and errors[-2] - errors[-1] <= ENOUGH * total:
            break
        up = _positive(across) + weights @ _positive(-gram)
        down = _positive(-across) + weights @ _positive(gram)
        weights = weights * np.sqrt((up + _TINY) / (down + _TINY))
    return factors, weights, errors


def _positive(values: Array) -> Array:
    return np.maximum(values, 0.0)


def _begin(rows: Array, rank: int, rng: np.random.Generator) -> Array:
    """Return weights to begin with: nearest of some rows far apart, as k-means++ draws them."""
    chosen = [int(rng.integers(len(rows)))]
    distance = np.square(rows - rows[chosen[0]]).sum(axis=1)
    while len(chosen) < rank:
        total = float(distance.sum())
        shares = distance / total if total > 0 else np.full(len(rows), 1 / len(rows))
        chosen.append(int(rng.choice(len(rows), p=shares)))
        distance = np.minimum(distance, np.square(rows - rows[chosen[-1]]).sum(axis=1))
    far = np.stack([np.square(rows - rows[each]).sum(axis=1) for each in chosen], axis=1)
    weights = np.full((len(rows), rank), 0.2)
    weights[np.arange(len(rows)), far.argmin(axis=1)] += 1.0
    return weights


def check_rank(rank: int | None, width: int, rows: int, site: str = "") -> int:
    """Return the rank of a proxy; refuse more than the width, or than the rows, allow."""
    if rank is None:
        rank = max(1, min(RANK, width // 4, rows - 1))
    where = f" at {site}" if site else ""
    if rank > width - 2:
        raise ConfigError(
            f"expected a rank of at most {width - 2}{where}, got {rank}: rows have {width} "
            "numbers, and two have to be left",
            hint=f"lower --rank; controls of the complement need at most {width // 2}",
            slug="tangent-rank",
        )
    if rank > rows - 1:
        raise ConfigError(
            f"expected a rank below the number of rows{where}, got {rank} of {rows} rows",
            hint="lower --rank, raise --early, or give more documents",
            slug="tangent-rank",
        )
    return rank


def matches(basis: Array, other: Array) -> Array:
    """Return the angle of each direction to a subspace, in degrees, (k,).

    >>> matches(np.eye(3)[:, :2], np.eye(3)[:, 1:2]).tolist()
    [90.0, 0.0]
    """
    cosines = np.linalg.norm(other.T @ basis, axis=0)
    return np.degrees(np.arccos(np.clip(cosines, 0.0, 1.0)))


def _signed(basis: Array) -> Array:
    """Return directions whose largest number is positive: a sign means nothing."""
    largest = np.abs(basis).argmax(axis=0)
    signs = np.sign(basis[largest, np.arange(basis.shape[1])])
    return np.ascontiguousarray(basis * np.where(signs == 0, 1.0, signs))


def _no_variance(site: str) -> UndefinedError:
    return UndefinedError(
        f"expected activations that differ at {site or 'a site'}, got equal rows",
        hint="a proxy needs variance; give more documents, or choose another site",
        slug="no-spread",
    )
