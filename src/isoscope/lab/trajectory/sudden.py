"""Sudden changes: where does a curve jump, by more than a smooth trend and its noise would?

The curve is fitted twice, as trend and noise (`isoscope.lab.trajectory.shocks`) and with a jump
between two checkpoints as well, wherever one fits best. Twice the logarithm of the ratio of the
likelihoods is compared with what curves without a jump reach, simulated for every trend and
noise that the curve may have. A single smooth rise, a sigmoid of any height, is a trend, too:
the jump has to fit better than that.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import erfc, exp, hypot, sqrt

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.lab.trajectory.shocks import (
    EDGE,
    FEWEST,
    Model,
    Places,
    all_shocks,
    is_flat,
    likelihood,
    model,
    places,
)
from isoscope.types import Array

LEVEL = 0.05
PLAUSIBLE = 2.5  # a trend and noise this much less likely, in the logarithm, still counts
POWER = 8  # of the mean of p-values over kinds: towards the largest of them
PLACED = 4.0  # places this much less likely, in the logarithm, are inside the interval
SIMULATED = 500  # curves without a jump
_HOPELESS = 0.25  # a p-value above which no more curves are simulated
_TAIL = 0.1  # share of simulated curves to which the tail of p-values is fitted
_AT_ONCE = 50  # simulated curves, which bounds the memory
_SEED = 17


@dataclass(frozen=True, slots=True)
class Sudden:
    """The largest jump of a curve, and whether a smooth trend with its noise has such jumps.

    `step`, `low` and `high` are None without a p-value of at most 5 %.
    """

    step: int | None  # the first checkpoint after the jump
    low: int | None  # 95 % interval for that checkpoint
    high: int | None
    size: float | None  # of the largest jump, significant or not
    p: float | None
    note: str = ""  # why there is no p-value

    @property
    def found(self) -> bool:
        """Whether there is a sudden change."""
        return self.step is not None


@dataclass(frozen=True)
class Fits:
    """Curves with and without the jump that fits best."""

    gain: Array  # (curves,) twice the logarithm of the ratio of likelihoods
    plain: Array  # (grid, curves) log-likelihood without a jump
    profile: Array  # (curves, places) largest log-likelihood with a jump at each place
    size: Array  # (curves,) of the jump that fits best


def find_sudden(
    steps: Sequence[int], values: Sequence[float], errors: Sequence[float] | None = None
) -> Sudden:
    """Return the largest jump of a curve, with its place, size and p-value.

    `errors` are standard errors of the values as far as they are independent from step to
    step: a jump that they explain is none, however smooth the rest of the curve is.
    """
    curve = np.asarray(values, dtype=float)
    if len(curve) != len(steps):
        raise ValueError(f"expected a value per step, got {len(curve)} for {len(steps)}")
    if len(steps) < FEWEST:
        return Sudden(None, None, None, None, None, f"fewer than {FEWEST} checkpoints")
    if is_flat(curve):
        return Sudden(None, None, None, None, None, "does not change at all")
    at = places(steps)
    fits = fit_jumps(model(at), curve[None])
    likely = fits.profile[0] >= fits.profile[0].max() - PLACED
    first, best, last = likely.argmax(), fits.profile[0].argmax(), likely[::-1].argmax()
    size = float(fits.size[0])
    p = chance(at, fits)[0]
    if errors is not None:
        after = int(best) + EDGE
        p = max(p, _by_error_alone(size, hypot(errors[after - 1], errors[after])))
    if p > LEVEL:
        return Sudden(None, None, None, size, p)
    low, high = int(steps[first + EDGE]), int(steps[len(likely) - 1 - last + EDGE])
    return Sudden(int(steps[best + EDGE]), low, high, size, p)


def _by_error_alone(size: float, error: float) -> float:
    """Return the chance that measurement error alone is this large."""
    return erfc(abs(size) / error / sqrt(2)) if error > 0 else 0.0


def fit_jumps(of: Model, curves: Array) -> Fits:
    """Return curves (curves, n) fitted without and with a jump."""
    shocks = all_shocks(of, curves)  # (grid, curves, m)
    plain = likelihood(of, shocks)
    along = shocks @ of.jump  # (grid, curves, places)
    left = _left(shocks)[..., None] - np.square(along)  # (grid, curves, places)
    jumped = _score(of, shocks, left)
    profile = jumped.max(axis=0)  # (curves, places)
    place, each = profile.argmax(axis=1), np.arange(len(curves))
    best = jumped[:, each, place].argmax(axis=0)
    return Fits(
        gain=2 * (profile.max(axis=1) - _smooth(of, shocks)),
        plain=plain,
        profile=profile,
        size=along[best, each, place] / of.length[best, place],
    )


def _gains(of: Model, curves: Array) -> Array:
    """Return the gain of `fit_jumps` alone, in a third of the time."""
    shocks = all_shocks(of, curves)
    return 2 * (_best(of, shocks, of.jump) - _smooth(of, shocks))


def _smooth(of: Model, shocks: Array) -> Array:
    """Return the log-likelihood of each curve without a jump, with or without a smooth rise."""
    return np.maximum(likelihood(of, shocks).max(axis=0), _best(of, shocks, of.rise))


def _best(of: Model, shocks: Array, shapes: Array) -> Array:
    """Return the log-likelihood of each curve with the unit shape that fits best."""
    along = shocks @ shapes  # (grid, curves, shapes)
    closest = np.abs(along, out=along).max(axis=-1)
    left = _left(shocks) - np.square(closest)
    return _score(of, shocks, left[..., None])[..., 0].max(axis=0)


def _left(shocks: Array) -> Array:
    return np.einsum("gcm,gcm->gc", shocks, shocks)


def _score(of: Model, shocks: Array, left: Array) -> Array:
    """Return the log-likelihood from sums of squares that are left, (grid, curves, shapes)."""
    left = np.maximum(left, 1e-12 * _left(shocks)[..., None])
    return -0.5 * shocks.shape[-1] * np.log(left) - of.volume[:, None, None]


def chance(at: Places, fits: Fits) -> list[float]:
    """Return the p-value of each curve: a mean over the kinds of trend and noise it may have.

    Kinds count by their likelihood. The mean is of a high power, near the largest p-value: the
    plain mean takes it for known how noisy the curve is, and raises 6.5 % of false alarms under
    AR(1) noise with 0.5. A few simulated curves tell where there is nothing.
    """
    found: list[float] = []
    for gain, plain in zip(fits.gain, fits.plain.T, strict=True):
        kinds = np.flatnonzero(plain >= plain.max() - PLAUSIBLE)
        weights = np.exp(plain[kinds] - plain.max())
        p = 1.0
        for count in (_AT_ONCE, SIMULATED):
            each = [_beyond(_without_jump(at, int(kind), count), float(gain)) for kind in kinds]
            p = _mean_of_power(np.array(each), weights)
            if p > _HOPELESS:
                break
        found.append(p)
    return found


def _mean_of_power(values: Array, weights: Array) -> float:
    """Return the mean of p-values by weight, taken of their eighth power."""
    largest = float(values.max())
    if largest == 0:
        return 0.0
    shares = np.power(values / largest, POWER)
    return largest * float(weights @ shares / weights.sum()) ** (1 / POWER)


def _beyond(simulated: Array, gain: float) -> float:
    """Return the share of simulated gains that are as large; beyond 10 % an exponential."""
    tail = simulated[-int(_TAIL * len(simulated)) :]
    if gain <= tail[0]:
        return 1.0 - float(np.searchsorted(simulated, gain)) / len(simulated)
    return _TAIL * exp(-(gain - tail[0]) / float((tail - tail[0]).mean()))


@lru_cache(maxsize=2048)
def _without_jump(at: Places, kind: int, count: int) -> Array:
    """Return the sorted gains of simulated curves of one trend and noise without a jump."""
    of = model(at)
    random = np.random.default_rng([_SEED, kind])
    gains: list[Array] = []
    for number in range(count // _AT_ONCE):
        drawn = random.normal(size=(_AT_ONCE, of.colour.shape[1]))
        if number == 0 and count > _AT_ONCE:  # the few that told that more are needed
            gains.append(_without_jump(at, kind, _AT_ONCE))
            continue
        noise = drawn @ of.colour[kind].T
        curves = np.pad(noise, ((0, 0), (len(at.order) - noise.shape[1], 0)))
        gains.append(_gains(of, curves))
    return np.sort(np.concatenate(gains))
