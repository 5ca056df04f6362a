"""Eigenvectors of a diagonal matrix plus an outer product.

Second moments about zero are those about the mean plus the outer product of the mean with
itself: V diag(l) V' + m m' = V (diag(l) + z z') V' with z = V' m. The eigenvalues of what is
in brackets are the roots of 1 + sum z_i^2 / (l_i - x), one between each l and the next. To
find them takes a quarter of the time of a decomposition.

Bunch, Nielsen and Sorensen (1978); steps to the roots as Li (1993), vectors as Gu and
Eisenstat (1994).
"""

import numpy as np

from isoscope.types import Array

_EPS = float(np.finfo(np.float64).eps)
_BLOCK = 98_304  # numbers that are worked on at once: they stay in the cache
_MOST = 60  # steps to a root; about six are taken


def decompose_sum(values: Array, z: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of diag(l) + z z', all in ascending order.

    Errors are those of any decomposition: rounding of the largest eigenvalue.
    """
    # a power of four, so that nothing vanishes or overflows: exact in l and in z
    largest = max(float(np.abs(values).max()), float(np.abs(z).max()) ** 2)
    scale = (int(np.frexp(largest)[1]) + 1) // 2
    values, turn = _decompose(np.ldexp(values, -2 * scale), np.ldexp(z, -scale))
    return np.ldexp(values, 2 * scale), turn


def _decompose(values: Array, z: Array) -> tuple[Array, Array]:
    length = float(np.sqrt(z @ z))
    if not length > 0:
        return values, np.eye(len(values))
    least = 8 * _EPS * max(float(np.abs(values).max()), length**2)
    gathered, mirrors = _gather(values, z, least)
    moved = np.flatnonzero(np.abs(gathered) * length > least)  # the others stay as they are
    found = _roots(values[moved], np.square(gathered[moved]))
    if found is None:
        return np.linalg.eigh(np.diag(values) + np.outer(z, z))
    roots, gaps = found
    turn = _vectors(values[moved], gaps, gathered[moved])
    if len(moved) == len(values):
        return roots, turn
    values, whole = values.copy(), np.eye(len(values))
    values[moved], whole[np.ix_(moved, moved)] = roots, turn
    order = np.argsort(values, kind="stable")
    whole = whole[:, order]
    for here, mirror in mirrors:
        whole[here] -= np.outer(mirror * (2 / (mirror @ mirror)), mirror @ whole[here])
    return values[order], whole


def _gather(values: Array, z: Array, least: float) -> tuple[Array, list[tuple[slice, Array]]]:
    """Return z mirrored so that of equal values one has all of it, and where by what."""
    mirrors: list[tuple[slice, Array]] = []
    if not (np.diff(values) <= least).any():
        return z, mirrors
    z, start = z.copy(), 0
    while start < len(values):
        stop = int(np.searchsorted(values, values[start] + least, side="right"))
        here = slice(start, stop)
        length = float(np.sqrt(z[here] @ z[here]))
        if stop - start > 1 and length > 0:
            mirror = z[here].copy()  # Householder: z becomes -length along the last of them
            sign = 1.0 if mirror[-1] >= 0 else -1.0
            mirror[-1] += sign * length
            mirrors.append((here, mirror))
            z[here] = 0.0
            z[stop - 1] = -sign * length
        start = stop
    return z, mirrors


def _roots(poles: Array, weights: Array) -> tuple[Array, Array] | None:
    """Return the roots of 1 + sum w_i / (p_i - x), and every pole less every root.

    (k,) and (k, k). Differences are what vectors are made of: they are found as such, from
    the pole that is nearer to the root, since a root may agree with its pole in all digits.
    """
    k = len(poles)
    roots, gaps = np.empty(k), np.empty((k, k))
    step = max(_BLOCK // max(k, 1), 16)
    for start in range(0, k - 1, step):
        here = slice(start, min(start + step, k - 1))
        found = _between_poles(poles, weights, here)
        if found is None:
            return None
        roots[here], gaps[:, here] = found
    found = _beyond_poles(poles, weights) if k else None
    if k and found is None:
        return None
    if found is not None:
        roots[-1], gaps[:, -1] = found
    return roots, gaps


def _between_poles(poles: Array, weights: Array, here: slice) -> tuple[Array, Array] | None:
    """Return those roots that lie between two poles, and all poles less each of them.

    Sums over the poles on either side are each replaced by a constant and one pole, of the
    same value and slope, and the root of what results is the next guess.
    """
    start, stop = here.start, here.stop
    low, high = poles[here], poles[start + 1 : stop + 1]  # (m,)
    middle = (high - low) / 2
    gaps = poles[:, None] - low  # (k, m)
    gaps -= middle
    value = 1 + weights @ np.reciprocal(gaps, out=gaps)
    left = value >= 0  # the root is nearer to the lower pole
    near = np.where(left, low, high)
    # both poles and the ends of where the root is, seen from the nearer pole
    first, second = low - near, high - near
    least, most = np.where(left, 0.0, -middle), np.where(left, middle, 0.0)
    one, other = weights[here], weights[start + 1 : stop + 1]
    x = _root_of_two(value + (one - other) / middle, one, other, first, second)
    x = np.where((x > least) & (x < most), x, (least + most) / 2)
    apart = poles[:, None] - near  # (k, m)
    numbers = np.arange(start, stop)
    sides = weights[here, None] * np.stack(
        [numbers[:, None] <= numbers, numbers[:, None] > numbers]
    )
    found, left_over, shifted = x.copy(), np.arange(stop - start), apart
    for _ in range(_MOST):
        gaps = apart - x
        np.reciprocal(gaps, out=gaps)
        below, beyond = _two_sums(weights, gaps, here, sides)
        value = 1 + below + beyond
        least, most = np.where(value > 0, least, x), np.where(value > 0, x, most)
        done = np.abs(value) <= 16 * _EPS * (1 - below + beyond)
        done |= most - least <= 2 * _EPS * np.abs(x)
        found[left_over] = x
        if done.all():
            return near + found, shifted - found
        slope, slope_beyond = _two_sums(weights, np.square(gaps, out=gaps), here, sides)
        to_first, to_second = first - x, second - x
        rest = value - to_first * slope - to_second * slope_beyond
        x = _root_of_two(rest, to_first**2 * slope, to_second**2 * slope_beyond, first, second)
        x = np.where((x > least) & (x < most), x, (least + most) / 2)
        if done.any():  # most roots are there after three steps
            go_on = np.flatnonzero(~done)
            apart, sides, left_over = apart[:, go_on], sides[:, :, go_on], left_over[go_on]
            x, least, most, first, second = (
                each[go_on] for each in (x, least, most, first, second)
            )
    return None


def _two_sums(weights: Array, terms: Array, here: slice, sides: Array) -> tuple[Array, Array]:
    """Return weighted sums of terms over poles up to that of each root, and over the others."""
    start, stop = here.start, here.stop
    inside = terms[here]
    return (
        weights[:start] @ terms[:start] + np.einsum("ij,ij->j", sides[0], inside),
        weights[stop:] @ terms[stop:] + np.einsum("ij,ij->j", sides[1], inside),
    )


def _root_of_two(rest: Array, one: Array, other: Array, first: Array, second: Array) -> Array:
    """Return the root of c + s / (a - x) + t / (b - x) between a and b, one of which is 0."""
    linear = rest * (first + second) + one + other
    constant = one * second + other * first
    root = np.sqrt(np.maximum(linear * linear - 4 * rest * constant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            linear > 0, 2 * constant / (linear + root), (linear - root) / (2 * rest)
        )


def _beyond_poles(poles: Array, weights: Array) -> tuple[float, Array] | None:
    """Return the root above all poles, and all poles less it."""
    poles_from_last = poles - poles[-1]
    least, most = 0.0, float(weights.sum())
    x = most
    for _ in range(_MOST):
        gaps = poles_from_last - x
        value = 1 + float(weights @ (1 / gaps))
        if abs(value) <= 16 * _EPS * (2 - value) or most - least <= 2 * _EPS * x:
            return float(poles[-1]) + x, gaps
        least, most = (least, x) if value > 0 else (x, most)
        slope = float(weights @ (1 / gaps**2))
        rest = value + x * slope
        guess = x * x * slope / rest if rest > 0 else most
        x = guess if least < guess < most else (least + most) / 2
    return None


def _vectors(poles: Array, gaps: Array, z: Array) -> Array:
    """Return the eigenvectors of diag(p) + z z', (k, k), from all poles less all roots.

    They are those of a z for which the roots would be exact, and so orthogonal however
    close roots are: z_i^2 is the product of (x_j - p_i) / (p_j - p_i), over j but i below.
    """
    k = len(poles)
    exact, step = np.empty(k), max(_BLOCK // max(k, 1), 16)
    for start in range(0, k, step):
        lines = np.arange(start, min(start + step, k))
        apart = poles[lines, None] - poles  # (m, k)
        # the pole that each root is divided by: below p_i its own, from there on the next
        ratios = gaps[lines]
        below = np.arange(k) < lines[:, None]
        divisors = np.where(below, apart, np.roll(apart, -1, axis=1))
        divisors[:, -1] = -1.0
        exact[lines] = np.multiply.reduce(ratios / divisors, axis=1)
    turn = np.copysign(np.sqrt(np.abs(exact)), z)[:, None] / gaps
    turn /= np.sqrt(np.einsum("ij,ij->j", turn, turn))
    return turn
