"""How much of the mean cosine is owed to each cause, in an order that never changes.

Five causes are taken away one after the other, and the share of a cause is by how much the
mean cosine falls when its turn comes. Where two causes overlap, the earlier one has it.

1. sinks: every sink keeps only what it has in common with the other rows.
2. dimensions: at most five that stand out from the mean vector as no mean spread over all
   dimensions would; they are set back to what the others carry on average.
3. frequency: what is left is the least mean cosine between rows of any two frequency bands
   (or within one): what tokens have in common however frequent they are.
4. position: likewise between any two position bands, among the two frequency bands found.
5. mean: what then is left, the vector that all rows share. The shares add up to one.

Of the two least alike bands the noise is allowed for: a band must be less alike by more
than its standard error over document groups. Intervals leave out a document group in turn,
with dimensions and bands as they were found.

What it cannot tell apart: a cause that acts along a single axis is `dimensions`, whatever
drives it; whatever frequency and position do together that does not add up is shared among
them; what no band, sink or dimension shows (topic, language) is in `mean`, or in nothing;
an effect that every band has at least a little of is, to that extent, the mean's.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from isoscope.errors import UndefinedError
from isoscope.explain.additive import Additive, fitted
from isoscope.explain.bands import Pair, least_alike, start
from isoscope.explain.cloud import Cloud, Totals
from isoscope.explain.dimensions import kept, rogue
from isoscope.explain.sinks import weight_without
from isoscope.measure.interval import LEAST_DOCUMENTS, around, standard_error
from isoscope.types import Array

ORDER = ("sinks", "dimensions", "frequency", "position", "mean")


@dataclass(frozen=True)
class Share:
    """A part of the mean cosine, with its 95 % interval where there are documents enough."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Attribution:
    """The mean cosine of a cloud and what it is owed to."""

    mean_cosine: Share
    shares: dict[str, Share]  # by cause, in the order of attribution; unknown ones left out
    dimensions: dict[int, float]  # share of each rogue dimension, the largest first
    frequency_bands: tuple[tuple[float, float], ...]  # share of rows, mean cosine within
    position_bands: tuple[tuple[float, float], ...]
    sink_rows: int
    rows: int
    width: int
    documents: int


def attributed(cloud: Cloud) -> Attribution:
    """Return how much of the mean cosine of a cloud is owed to each cause."""
    cloud = cloud.joined()
    whole = cloud.total()
    enough = min(cloud.documents, cloud.groups) >= LEAST_DOCUMENTS
    without = [cloud.without(group) for group in range(cloud.groups)] if enough else []
    cosines = [each.total().mean_cosine for each in without]
    mean_cosine = _share(cloud, whole.mean_cosine, cosines)
    if mean_cosine.value <= 0 or (mean_cosine.low is not None and mean_cosine.low <= 0):
        raise UndefinedError(
            f"expected a mean cosine above zero, got {mean_cosine.value:.2g}",
            hint="rows have no direction in common: there is nothing to explain",
            slug="nothing-to-explain",
        )
    dimensions = _rogue(cloud)
    value = _shares(cloud, dimensions)
    others = [_shares(each, _rogue(each)) for each in without]
    unknown = {
        "frequency": not cloud.frequencies_known,
        "position": not cloud.positions_known,
    }
    shares = {
        name: _share(cloud, value[number], [each[number] for each in others])
        for number, name in enumerate(ORDER)
        if not unknown.get(name)
    }
    frequency, position = _within(cloud)
    return Attribution(
        mean_cosine=mean_cosine,
        shares=shares,
        dimensions=_by_dimension(whole, dimensions),
        frequency_bands=frequency if cloud.frequencies_known else (),
        position_bands=position if cloud.positions_known else (),
        sink_rows=int(whole.sink_rows),
        rows=int(whole.rows + whole.sink_rows),
        width=len(whole.energy),
        documents=cloud.documents,
    )


def _rogue(cloud: Cloud) -> tuple[int, ...]:
    """Return the rogue dimensions, seen in the mean and in what all bands have in common.

    Causes that are spread over all dimensions hide them; where these do not act they show.
    """
    model = fitted(cloud, kept(cloud.units.shape[2], ()))
    _, common = _least(cloud, model)
    weights = [start(model.products).left, common.left, common.right]
    weights = [each for at, each in enumerate(weights) if not _among(each, weights[:at])]
    noise = [max(float(each @ model.noise @ each), 0.0) * model.spread for each in weights]
    lines = [each @ model.lines for each in weights]
    return rogue(list(zip(lines, noise, strict=True)))


def _among(weights: Array, others: list[Array]) -> bool:
    return any(np.allclose(weights, each) for each in others)


def _least(cloud: Cloud, model: Additive) -> tuple[Pair, Pair]:
    """Return the least alike bands of frequency, and then those of position."""
    frequency, position = model.blocks
    first = least_alike(model.products, start(model.products), frequency, cloud.scales[0])
    return first, least_alike(model.products, first, position, cloud.scales[1])


def _shares(cloud: Cloud, dimensions: tuple[int, ...]) -> list[float]:
    """Return the shares of all causes, in order."""
    totals = cloud.total()
    width = len(totals.energy)
    left = kept(width, dimensions)
    parts, weight = totals.by_dimension, weight_without(totals)
    no_sinks = weight * float(parts.sum())
    scale = width / left.sum()  # rogue dimensions carry what the others do on average
    spread = float(parts[left].sum()) * scale
    common = [spread, spread, spread]
    if spread > 0:
        model = fitted(cloud, left)
        chain = [start(model.products), *_least(cloud, model)]
        for at, (before, after) in enumerate(pairwise(chain)):
            fallen = scale * (before.product - after.product)
            common[at + 1] = _between(0.0, common[at] - fallen, common[at])
    chain = [totals.mean_cosine, no_sinks, *(weight * each for each in common), 0.0]
    return [(a - b) / chain[0] for a, b in pairwise(chain)]


def _between(least: float, value: float, most: float) -> float:
    return min(max(float(value), least), most)


def _share(cloud: Cloud, value: float, without: list[float]) -> Share:
    if not without:
        return Share(value, None, None)
    error = standard_error(value, np.array(without), cloud.sizes)
    low, high = around(value, error, cloud.groups, logarithmic=False)
    return Share(value, low, high)


def _by_dimension(totals: Totals, dimensions: tuple[int, ...]) -> dict[int, float]:
    """Return the share of each rogue dimension, beyond what the others have on average."""
    parts = totals.by_dimension
    usual = float(parts[kept(len(parts), dimensions)].mean())
    factor = weight_without(totals) / totals.mean_cosine
    return {each: factor * float(parts[each] - usual) for each in dimensions}


def _within(
    cloud: Cloud,
) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
    """Return for each band its share of the rows and the mean cosine within it."""
    usual = cloud.crossed.sum(axis=0) / cloud.crossed.sum()
    model = fitted(cloud, kept(cloud.units.shape[2], ()))

    def each(block: slice, weights: Array) -> tuple[tuple[float, float], ...]:
        lines = np.eye(len(model.products))[block]
        lines[:, 0] = 1
        alike = np.einsum("ab,bc,ac->a", lines, model.products, lines)
        return tuple((float(w), float(a)) for w, a in zip(weights, alike, strict=True))

    frequency, position = model.blocks
    return each(frequency, usual.sum(axis=1)), each(position, usual.sum(axis=0))
