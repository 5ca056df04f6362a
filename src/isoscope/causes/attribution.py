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

Noise is allowed for: bands differ where they do so by more than documents drawn anew would
make them (`additive`), dimensions stand out where no mean that points anywhere would have
them (`dimensions`), and slow effects are followed to the edge of what was seen (`bands`).
Intervals leave out a document group in turn and find everything anew; those of `dimensions`,
`frequency` and `position` go up to what may be there without having been distinguished from
the mean, and that of `mean` down by as much.

What it cannot distinguish: a cause that acts along a single axis is `dimensions`, whatever
drives it; whatever frequency and position do together that does not add up is shared among
them; what no band, sink or dimension shows (topic, language) is in `mean`, or in nothing;
an effect that every band has at least a little of is, to that extent, the mean's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from isoscope.causes.additive import Additive, Noise, fit, noise_of
from isoscope.causes.band_pairs import least_alike, mean_pair, shortest
from isoscope.causes.cloud import CloudSums, Totals
from isoscope.causes.dimensions import MOST, mask_without, rogue
from isoscope.errors import UndefinedError
from isoscope.measures.interval import LEAST_DOCUMENTS, around, standard_error
from isoscope.types import CAUSE_ORDER as ORDER
from isoscope.types import Array


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
    shares: dict[str, Share]  # by cause, in the order of attribution; without unknown ones
    dimensions: dict[int, float]  # share of each rogue dimension, the largest first
    frequency_bands: tuple[tuple[float, float], ...]  # share of rows, mean cosine within
    position_bands: tuple[tuple[float, float], ...]
    sink_rows: int
    rows: int
    width: int
    documents: int


def attribute(cloud: CloudSums) -> Attribution:
    """Return how much of the mean cosine of a cloud is owed to each cause."""
    cloud = cloud.join_small_bands()
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
    noise = noise_by_dimensions(cloud)
    found = shares_of(cloud, noise)
    others = [shares_of(each, noise).shares for each in without]
    unknown = {
        "frequency": not cloud.frequencies_known,
        "position": not cloud.positions_known,
    }
    shares = {
        name: _widen(
            _share(cloud, found.shares[name], [each[name] for each in others]), name, found
        )
        for name in ORDER
        if not unknown.get(name)
    }
    frequency, position = _within(cloud)
    return Attribution(
        mean_cosine=mean_cosine,
        shares=shares,
        dimensions=by_dimension(whole, found.dimensions),
        frequency_bands=frequency if cloud.frequencies_known else (),
        position_bands=position if cloud.positions_known else (),
        sink_rows=int(whole.sink_rows),
        rows=int(whole.rows + whole.sink_rows),
        width=len(whole.energy),
        documents=cloud.documents,
    )


def _share(cloud: CloudSums, value: float, without: list[float]) -> Share:
    if not without:
        return Share(value, None, None)
    error = standard_error(value, np.array(without), cloud.sizes)
    low, high = around(value, error, cloud.groups, logarithmic=False)
    return Share(value, low, high)


def _widen(share: Share, name: str, found: "Shares") -> Share:
    """Return a share whose interval allows for what cannot be distinguished by any documents.

    Dimensions too small to stand out and bands that differ too little count as the mean.
    What the others carry on rogue dimensions is only known on average.
    """
    if share.low is None or share.high is None:
        return share
    below, above = share.value - share.low, share.high - share.value
    if name in ("dimensions", "mean"):
        below, above = (float(np.hypot(each, 2 * found.doubt)) for each in (below, above))
    if name == "mean":
        below += sum(found.unseen.values())
    above += found.unseen.get(name, 0.0)
    # What is not distinguished lies between nothing and everything; only noise goes beyond.
    low, high = max(share.value - below, 0.0), min(share.value + above, 1.0)
    return Share(share.value, min(share.low, low), max(share.high, high))


def _within(
    cloud: CloudSums,
) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
    """Return for each band its share of the rows and the mean cosine within it."""
    usual = cloud.crossed.sum(axis=0) / cloud.crossed.sum()
    model = fit(cloud, mask_without(cloud.units.shape[2], ()))

    def each(block: slice, weights: Array) -> tuple[tuple[float, float], ...]:
        lines = np.eye(len(model.uncleaned))[block]
        lines[:, 0] = 1
        alike = np.einsum("ab,bc,ac->a", lines, model.uncleaned, lines)
        return tuple((float(w), float(a)) for w, a in zip(weights, alike, strict=True))

    frequency, position = model.blocks
    return each(frequency, usual.sum(axis=1)), each(position, usual.sum(axis=0))


@dataclass(frozen=True)
class Shares:
    """The share of each cause in the mean cosine of a cloud, and what limits them."""

    shares: dict[str, float]
    dimensions: tuple[int, ...]
    unseen: dict[str, float]  # by how much a share may be larger without being noticed
    doubt: float  # standard error of what the other causes have on the rogue dimensions


NoiseWithout = Callable[[tuple[int, ...]], Noise]


def noise_by_dimensions(cloud: CloudSums) -> NoiseWithout:
    """Return what gives the noise of a cloud without some dimensions; computed once each."""
    return cache(lambda without: noise_of(cloud, mask_without(cloud.units.shape[2], without)))


def shares_of(cloud: CloudSums, noise: NoiseWithout) -> Shares:
    """Return the share of every cause; the noise is that of the whole cloud."""
    totals = cloud.total()
    parts, weight = totals.by_dimension, weight_without(totals)
    width = len(parts)
    model = fit(cloud, mask_without(width, ()), noise(()))
    dimensions = _rogue(cloud, model)
    left = mask_without(width, dimensions)
    if dimensions:
        model = fit(cloud, left, noise(tuple(sorted(dimensions))))
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
    return Shares(
        shares=dict(zip(ORDER, shares, strict=True)),
        dimensions=dimensions,
        unseen=dict(zip(ORDER[1:4], (factor * each for each in unseen), strict=True)),
        doubt=factor * usual * float(np.sqrt(2 * len(dimensions))),
    )


def by_dimension(totals: Totals, dimensions: tuple[int, ...]) -> dict[int, float]:
    """Return the share of each rogue dimension, beyond what the others have on average."""
    parts = totals.by_dimension
    usual = float(parts[mask_without(len(parts), dimensions)].mean())
    factor = weight_without(totals) / totals.mean_cosine
    return {each: factor * float(parts[each] - usual) for each in dimensions}


def _common(
    cloud: CloudSums, model: Additive, products: Array, scale: float, spread: float
) -> list[float]:
    """Return what all rows have in common, what those of all frequencies, of all positions."""
    out = [spread]
    whole, (frequency, position) = mean_pair(products), model.blocks
    # the least alike bands of frequency, and on top of them those of position
    first = least_alike(products, whole, frequency, cloud.scales[0])
    second = least_alike(products, first, position, cloud.scales[1])
    for before, after in pairwise([whole, first, second]):
        fallen = scale * (before.product - after.product)
        out.append(min(max(out[-1] - fallen, min(0.0, spread)), out[-1]))
    return out


def _rogue(cloud: CloudSums, model: Additive) -> tuple[int, ...]:
    """Return the rogue dimensions, seen in the mean and where the mean is shortest.

    Causes that are spread over all dimensions hide them; where these do not act they show.
    """
    mean = place = mean_pair(model.products)
    for block, scale in zip(model.blocks, cloud.scales, strict=True):
        place = shortest(model.products, place, block, scale)
    moved = not np.allclose(place.left @ model.lines, mean.left @ model.lines)
    weights = [mean.left, place.left] if moved else [mean.left]
    noise = [max(float(each @ model.noise @ each), 0.0) * model.spread for each in weights]
    return rogue([(w @ model.lines, n) for w, n in zip(weights, noise, strict=True)])


def weight_without(totals: Totals) -> float:
    """Return what the mean cosine of the other rows is multiplied with for that of all.

    With s and o the mean unit vectors of sinks and of other rows, a sink keeps the part b o
    of s that the others have as well, b = s.o/|o|^2 between 0 and 1: a sink that points
    where everything points takes nothing from the common mean.
    """
    n, sinks = totals.rows, totals.sink_rows
    if not sinks:
        return 1.0
    inside = float(totals.by_dimension.sum())
    across = float(totals.sinks @ totals.unit) / (sinks * n)
    shared = min(max(across / inside, 0.0), 1.0) if inside > 0 else 0.0
    return ((n + shared * sinks) / (n + sinks)) ** 2
