"""The shares of all causes in the mean cosine of a cloud, in their fixed order."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from isoscope.causes.additive import Additive, Noise, fitted, noise_of
from isoscope.causes.bands import Pair, least_alike, shortest, start
from isoscope.causes.cloud import Cloud, Totals
from isoscope.causes.dimensions import MOST, kept, rogue
from isoscope.causes.sinks import weight_without
from isoscope.types import CAUSE_ORDER as ORDER
from isoscope.types import Array


@dataclass(frozen=True)
class Told:
    """What was told of a cloud."""

    shares: dict[str, float]
    dimensions: tuple[int, ...]
    unseen: dict[str, float]  # by how much a share may be larger without having been told
    doubt: float  # standard error of what the other causes have on the rogue dimensions


Noises = Callable[[tuple[int, ...]], Noise]


def noises(cloud: Cloud) -> Noises:
    """Return what gives the noise of a cloud without some dimensions; computed once each."""
    return cache(lambda without: noise_of(cloud, kept(cloud.units.shape[2], without)))


def told(cloud: Cloud, noise: Noises) -> Told:
    """Return the share of every cause; the noise is that of the whole cloud."""
    totals = cloud.total()
    parts, weight = totals.by_dimension, weight_without(totals)
    width = len(parts)
    model = fitted(cloud, kept(width, ()), noise(()))
    dimensions = _rogue(cloud, model)
    left = kept(width, dimensions)
    if dimensions:
        model = fitted(cloud, left, noise(tuple(sorted(dimensions))))
    scale = width / left.sum()  # rogue dimensions carry what the others do on average
    spread = scale * float(parts[left].sum())
    common = _common(cloud, model, model.products, scale, spread)
    chain = [totals.mean_cosine, weight * float(parts.sum()), *(weight * c for c in common), 0]
    shares = [(a - b) / chain[0] for a, b in pairwise(chain)]
    most = [a - b for a, b in pairwise(_common(cloud, model, model.uncleaned, scale, spread))]
    seen = [a - b for a, b in pairwise(common)]
    unseen = [max(a - b, 0.0) for a, b in zip(most, seen, strict=True)]
    usual = max(spread, 0.0) / width
    hidden = np.sort(parts[left])[::-1][: MOST - len(dimensions)] - usual
    unseen = [float(np.clip(hidden, 0, None).sum()), *unseen]
    factor = weight / totals.mean_cosine
    return Told(
        shares=dict(zip(ORDER, shares, strict=True)),
        dimensions=dimensions,
        unseen=dict(zip(ORDER[1:4], (factor * each for each in unseen), strict=True)),
        doubt=factor * usual * float(np.sqrt(2 * len(dimensions))),
    )


def by_dimension(totals: Totals, dimensions: tuple[int, ...]) -> dict[int, float]:
    """Return the share of each rogue dimension, beyond what the others have on average."""
    parts = totals.by_dimension
    usual = float(parts[kept(len(parts), dimensions)].mean())
    factor = weight_without(totals) / totals.mean_cosine
    return {each: factor * float(parts[each] - usual) for each in dimensions}


def _common(
    cloud: Cloud, model: Additive, products: Array, scale: float, spread: float
) -> list[float]:
    """Return what all rows have in common, what those of all frequencies, of all positions."""
    out = [spread]
    pairs = [start(products), *_least(cloud, model, products)]
    for before, after in pairwise(pairs):
        fallen = scale * (before.product - after.product)
        out.append(min(max(out[-1] - fallen, min(0.0, spread)), out[-1]))
    return out


def _least(cloud: Cloud, model: Additive, products: Array) -> tuple[Pair, Pair]:
    """Return the least alike bands of frequency, and on top of them those of position."""
    frequency, position = model.blocks
    first = least_alike(products, start(products), frequency, cloud.scales[0])
    return first, least_alike(products, first, position, cloud.scales[1])


def _rogue(cloud: Cloud, model: Additive) -> tuple[int, ...]:
    """Return the rogue dimensions, seen in the mean and where the mean is shortest.

    Causes that are spread over all dimensions hide them; where these do not act they show.
    """
    mean = place = start(model.products)
    for block, scale in zip(model.blocks, cloud.scales, strict=True):
        place = shortest(model.products, place, block, scale)
    moved = not np.allclose(place.left @ model.lines, mean.left @ model.lines)
    weights = [mean.left, place.left] if moved else [mean.left]
    noise = [max(float(each @ model.noise @ each), 0.0) * model.spread for each in weights]
    return rogue([(w @ model.lines, n) for w, n in zip(weights, noise, strict=True)])
