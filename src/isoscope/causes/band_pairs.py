"""The two least alike bands: what their rows have in common, all rows have.

A band is compared at its middle. Effects that fade out slowly are not over there, so that a
straight line through the two outermost bands is followed to the outer edge of what was seen;
but no further than to where the mean is shortest: an effect fades out, it does not turn round.
"""

from dataclasses import dataclass

import numpy as np

from isoscope.types import Array


@dataclass(frozen=True)
class Scale:
    """Where bands lie, in bands: the middle of each, and the outer edges."""

    middles: Array
    first: float
    last: float


@dataclass(frozen=True)
class Pair:
    """Two bands, as weights of the lines of the model, and the product of their means."""

    left: Array
    right: Array
    product: float


def mean_pair(products: Array) -> Pair:
    """Return the mean over all bands, twice: before bands are distinguished."""
    mean = np.eye(len(products))[0]
    return Pair(mean, mean, float(products[0, 0]))


def least_alike(products: Array, before: Pair, block: slice, scale: Scale) -> Pair:
    """Return the two least alike bands of a block, each on top of one of the pair before."""
    bands = _bands(products, before, block, scale)
    lefts, rights = before.left + bands, before.right + bands
    table = lefts @ products @ rights.T
    left, right = np.unravel_index(np.argmin(table), table.shape)
    return Pair(lefts[left], rights[right], float(table[left, right]))


def shortest(products: Array, before: Pair, block: slice, scale: Scale) -> Pair:
    """Return the band of a block with the shortest mean, twice: where least is going on."""
    means = before.left + _bands(products, before, block, scale)
    squares = np.einsum("ab,bc,ac->a", means, products, means)
    least = int(np.argmin(squares))
    return Pair(means[least], means[least], float(squares[least]))


def _bands(products: Array, before: Pair, block: slice, scale: Scale) -> Array:
    """Return the weights of all bands of a block, and of its two outer edges."""
    each = np.eye(len(products))[block]
    if len(each) < 2:
        return each
    middles = scale.middles
    low = (middles[0] - scale.first) / (middles[1] - middles[0])
    high = (scale.last - middles[-1]) / (middles[-1] - middles[-2])
    first = _outwards(products, before, each[0], each[1], low)
    last = _outwards(products, before, each[-1], each[-2], high)
    return np.vstack([each, first, last])


def _outwards(products: Array, before: Pair, band: Array, inner: Array, most: float) -> Array:
    """Return the weights of a band's outer edge, or of where the mean is shortest before it."""
    step = band - inner
    bend = float(step @ products @ step)
    slope = float(step @ products @ (before.left + before.right + 2 * band)) / 2
    far = min(max(-slope / bend, 0.0), most, 1.0) if bend > 0 else 0.0
    return band + far * step
