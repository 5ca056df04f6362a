"""Smooth trend and autocorrelated noise, fitted to curves, and the shocks they do not foresee.

Every curve is taken as the sum of a trend whose slope drifts (the cubic smoothing spline of
Wahba, 1978) and of AR(1) noise, from white noise to a random walk. Both parameters are chosen
by restricted likelihood from a grid. The shocks are one-step-ahead prediction errors: each
depends on the past alone, so that what comes first stays first. All operators depend on the
places of the checkpoints only and are computed once.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.types import Array

MEMORIES = (0.0, 0.4, 0.7, 0.9, 1.0)  # of the noise: from white noise to a random walk
BENDS = (0.1, 10.0, 1e3, 1e5, 1e7)  # how far the drift goes over all checkpoints, in variances
SWELLS = (-2.0, 0.0, 2.0)  # logarithm of the noise at the end over that at the beginning
RISES = (1 / 16, 1 / 50)  # scales of smooth rises, of the length of the curve
NARROWEST = 1.0  # of them, in checkpoints
EDGE = 2  # checkpoints on either side of a jump, at least
LOST = 3  # values of a curve that go into its level, its slope and its slope in the logarithm
FEWEST = 8  # checkpoints with which anything can be fitted
LONG_GAP = 3.0  # times its neighbours, from which on a gap counts as long as it is
_NEIGHBOURS = 2  # gaps on either side that a gap is compared with
_ON_A_LINE = 0.03  # how far three values are off one, of their size
_FLAT = 1e-12  # of its size: a curve that varies by less does not vary
_LAGS = 3  # of the autocorrelation by which shocks are checked
_SURE = 7.815  # 95 % point of chi-squared with as many degrees of freedom


@dataclass(frozen=True)
class Model:
    """The operators of every trend and noise in the grid, for checkpoints at these places."""

    shock: Array  # (grid, m, n): curves to their m = n - LOST shocks
    colour: Array  # (grid, m, m): shocks to curves, whose first values are zero
    volume: Array  # (grid,): half the logarithm of the determinant of the covariance
    jump: Array  # (grid, m, n - 2 EDGE + 1): unit shocks of a jump in each place
    length: Array  # (grid, n - 2 EDGE + 1): of the shocks of a jump of size one
    rise: Array  # (grid, m, rises): unit shocks of smooth rises


class Places(NamedTuple):
    """Where checkpoints stand on the two axes along which trends are smooth."""

    order: tuple[float, ...]
    early: tuple[float, ...]  # steep first, as training mostly is; as long as the order


def places(steps: Sequence[int]) -> Places:
    """Return where checkpoints stand in a curve: in their order, and early ones wide apart.

    Steps that are equally spaced, that double, or that do first one and then the other, are
    counted one by one; a trend is smooth in that order as well. A gap that is more than three
    times the median of its neighbours counts as that many checkpoints. The second axis is the
    logarithm of the step, in units of the smallest gap.

    >>> places([0, 1, 2, 4, 8, 16, 32]).order
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    >>> places([0, 10, 20, 30, 230, 240, 250, 260]).order
    (0.0, 1.0, 2.0, 3.0, 23.0, 24.0, 25.0, 26.0)
    >>> [round(each, 2) for each in places([0, 10, 20, 30]).early]
    [0.0, 1.5, 2.38, 3.0]
    """
    gaps = np.diff(np.asarray(steps, dtype=float))
    if len(gaps) == 0 or not (gaps > 0).all():
        raise ValueError("expected two or more steps in increasing order")
    found = [0.0]
    for index, gap in enumerate(gaps):
        first = max(index - _NEIGHBOURS, 0)
        others = np.r_[gaps[first:index], gaps[index + 1 : index + 1 + _NEIGHBOURS]]
        ratio = float(gap / np.median(others)) if len(others) else 1.0
        found.append(found[-1] + (ratio if ratio > LONG_GAP else 1.0))
    early = _early(np.asarray(found), np.r_[0.0, np.cumsum(gaps)] / gaps.min())
    return Places(tuple(found), tuple(early.tolist()))


def _early(order: Array, since: Array) -> Array:
    """Return the logarithm of the steps since the first, as long as the order.

    Its slope is taken off a curve beside that of the order, by the first values: these must
    not be on a line, as 1, 2 and 4 are.
    """
    for begin in (1.0, 2.0, 4.0):
        early = np.log1p(since / begin)
        (_, x, y), (_, a, b) = order[:3], early[:3]
        if abs(a * y - b * x) > _ON_A_LINE * b * y:
            break
    else:
        early = np.log1p(order)
    return early * order[-1] / early[-1]


@lru_cache(maxsize=2)
def model(at: Places) -> Model:
    """Return the operators for checkpoints at these places."""
    x, early = np.asarray(at.order), np.asarray(at.early)
    n = len(x)
    contrast = _without_lines(x, early)  # (n - LOST, n)
    drifts = [np.zeros((n, n))]
    drifts += [bend * _drift(u) / x[-1] ** 3 for u in (x, early) for bend in BENDS]
    step = np.tril(np.ones((n, n)))[:, EDGE : n - EDGE + 1]  # (n, n - 2 EDGE + 1)
    louder = [np.exp(swell * (x[LOST:] / x[-1] - 0.5)) for swell in SWELLS]
    apart = np.abs(np.subtract.outer(x, x))
    shock, colour, volume = [], [], []
    for memory in MEMORIES:
        noise = np.minimum.outer(x, x)
        if memory < 1:
            noise = np.power(memory, apart) / (1 - memory**2)
        for drift in drifts:
            root = np.linalg.cholesky(contrast @ (noise + drift) @ contrast.T)
            quiet = np.linalg.solve(root, contrast)
            for loud in louder:
                shock.append(quiet / loud[:, None])
                colour.append(root * loud)
                volume.append(np.log(np.diag(root) * loud).sum())
    seen = np.stack(shock)
    widths = sorted({max(share * float(x[-1]), NARROWEST) for share in RISES})
    narrow = np.maximum(RISES[0] * early[-1], NARROWEST * np.diff(early))  # (n - 1,)
    rises = np.column_stack([*(_rises(x, width) for width in widths), _rises(early, narrow)])
    jump, length = _unit(seen @ step)
    rise, _ = _unit(seen @ rises)
    return Model(seen, np.stack(colour), np.array(volume), jump, length, rise)


def _unit(shapes: Array) -> tuple[Array, Array]:
    """Return shapes (grid, m, shapes) of length one, and the lengths they had."""
    length = np.maximum(np.linalg.norm(shapes, axis=1), np.finfo(float).tiny)
    return shapes / length[:, None], length


def _rises(x: Array, width: float | Array) -> Array:
    """Return sigmoids, each in the middle between two checkpoints, (n, n - 1)."""
    middle = (x[1:] + x[:-1]) / 2
    return 0.5 + 0.5 * np.tanh((x[:, None] - middle) / (2 * width))


def _drift(u: Array) -> Array:
    """Return the covariance of an integrated Wiener process at these places."""
    sooner, later = np.minimum.outer(u, u), np.maximum.outer(u, u)
    return np.square(sooner) * (3 * later - sooner) / 6


def _without_lines(*axes: Array) -> Array:
    """Return what takes level and slopes, as the first values have them, off all later ones."""
    lines = np.column_stack([np.ones(len(axes[0])), *axes])  # (n, LOST)
    later = np.linalg.solve(lines[:LOST].T, lines[LOST:].T).T  # (n - LOST, LOST)
    return np.column_stack([-later, np.eye(len(later))])


def is_flat(values: Array) -> bool:
    """Whether a curve is a straight line but for rounding."""
    return bool(np.ptp(values) <= _FLAT * np.abs(values).max(initial=0.0))


def likelihood(of: Model, shocks: Array) -> Array:
    """Return the restricted log-likelihood of each trend and noise, the scale at its best.

    Shocks are (grid, curves, m), the likelihood is (grid, curves).
    """
    squares = np.maximum(np.square(shocks).sum(-1), np.finfo(float).tiny)
    return -0.5 * shocks.shape[-1] * np.log(squares) - of.volume[:, None]


def all_shocks(of: Model, curves: Array) -> Array:
    """Return the shocks of curves (curves, n) by every trend and noise, (grid, curves, m)."""
    found = np.tensordot(of.shock, curves, axes=(2, 1))  # (grid, m, curves)
    return found.transpose(0, 2, 1)


def best_shocks(of: Model, curves: Array) -> Array:
    """Return the shocks of curves (curves, n) by the likeliest trend and noise of each."""
    found = all_shocks(of, curves)
    best = likelihood(of, found).argmax(axis=0)
    return found[best, np.arange(len(curves))]


def have_pattern(shocks: Array) -> Array:
    """Whether shocks (curves, m) follow from those before, so that they are no shocks.

    That is so for curves with hardly any noise: what no spline follows is all there is to see.
    Correlations with the shocks one, two and three before, each over its own spread, so that
    noise may be louder at times; at the 5 % level.
    """
    centred = shocks - shocks.mean(axis=-1, keepdims=True)
    total = np.zeros(shocks.shape[:-1])
    for lag in range(1, _LAGS + 1):
        products = centred[..., lag:] * centred[..., :-lag]
        spread = np.maximum(np.square(products).sum(-1), np.finfo(float).tiny)
        total += np.square(products.sum(-1)) / spread
    return total > _SURE
