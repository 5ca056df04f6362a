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
from isoscope.explain.bands import between_frequencies, between_positions, products
from isoscope.explain.cloud import Cloud, Totals
from isoscope.explain.dimensions import kept, rogue
from isoscope.explain.sinks import weight_without
from isoscope.measure.interval import LEAST_DOCUMENTS, around, standard_error
from isoscope.types import Array

ORDER = ("sinks", "dimensions", "frequency", "position", "mean")
_ALLOWED = 1.0  # standard errors by which two bands must be less alike than the others


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


@dataclass(frozen=True)
class _Choice:
    """What was found on all rows and stays as it is while groups are left out."""

    dimensions: tuple[int, ...]
    frequencies: tuple[int, int] = (0, 0)
    frequency_noise: float = 0.0
    positions: tuple[int, int] = (0, 0)
    position_noise: float = 0.0


def attributed(cloud: Cloud) -> Attribution:
    """Return how much of the mean cosine of a cloud is owed to each cause."""
    cloud = cloud.joined()
    whole = cloud.total()
    enough = min(cloud.documents, cloud.groups) >= LEAST_DOCUMENTS
    without = [cloud.without(group) for group in range(cloud.groups)] if enough else []
    mean_cosine = _share(cloud, whole.mean_cosine, [t.mean_cosine for t in without])
    if mean_cosine.value <= 0 or (mean_cosine.low is not None and mean_cosine.low <= 0):
        raise UndefinedError(
            f"expected a mean cosine above zero, got {mean_cosine.value:.2g}",
            hint="rows have no direction in common: there is nothing to explain",
            slug="nothing-to-explain",
        )
    choice = _chosen(cloud, whole, without)
    value = _shares(whole, choice)
    others = [_shares(each, choice) for each in without]
    unknown = {
        "frequency": not cloud.frequencies_known,
        "position": not cloud.positions_known,
    }
    shares = {
        name: _share(cloud, value[number], [each[number] for each in others])
        for number, name in enumerate(ORDER)
        if not unknown.get(name)
    }
    effects = products(whole, kept(len(whole.energy), ()))
    frequency, position = _within(whole, effects)
    return Attribution(
        mean_cosine=mean_cosine,
        shares=shares,
        dimensions=_by_dimension(whole, choice.dimensions),
        frequency_bands=frequency if cloud.frequencies_known else (),
        position_bands=position if cloud.positions_known else (),
        sink_rows=int(whole.sink_rows),
        rows=int(whole.rows + whole.sink_rows),
        width=len(whole.energy),
        documents=cloud.documents,
    )


def _chosen(cloud: Cloud, whole: Totals, without: list[Totals]) -> _Choice:
    dimensions = rogue(whole)
    left = kept(len(whole.energy), dimensions)
    effects = [products(each, left) for each in (whole, *without)]
    totals = [whole, *without]

    def least(tables: list[Array]) -> tuple[tuple[int, int], float]:
        """Return which two bands are least alike, noise allowed for, and their noise."""
        noise = np.zeros_like(tables[0])
        if without:
            stacked = np.array(tables[1:])
            for place in np.ndindex(*noise.shape):
                error = standard_error(
                    float(tables[0][place]), stacked[(slice(None), *place)], cloud.sizes
                )
                noise[place] = _ALLOWED * error
        first, second = np.unravel_index(np.argmin(tables[0] + noise), noise.shape)
        return (int(first), int(second)), float(noise[first, second])

    pairs = zip(totals, effects, strict=True)
    frequencies, frequency_noise = least([between_frequencies(t, e) for t, e in pairs])
    pairs = zip(totals, effects, strict=True)
    positions, position_noise = least([between_positions(t, e, frequencies) for t, e in pairs])
    return _Choice(dimensions, frequencies, frequency_noise, positions, position_noise)


def _shares(totals: Totals, choice: _Choice) -> list[float]:
    """Return the shares of all causes, in order."""
    width = len(totals.energy)
    left = kept(width, choice.dimensions)
    parts, weight = totals.by_dimension, weight_without(totals)
    no_sinks = weight * float(parts.sum())
    scale = width / left.sum()  # rogue dimensions carry what the others do on average
    spread = float(parts[left].sum()) * scale
    common = [spread, spread, spread]
    if spread > 0:
        effects = products(totals, left)
        alike = between_frequencies(totals, effects)[choice.frequencies]
        common[1] = _between(0.0, scale * (alike + choice.frequency_noise), spread)
        placed = between_positions(totals, effects, choice.frequencies)[choice.positions]
        common[2] = _between(0.0, scale * (placed + choice.position_noise), common[1])
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
    totals: Totals, effects: Array
) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
    """Return for each band its share of the rows and the mean cosine within it."""
    usual = totals.crossed / totals.rows
    frequencies, positions = usual.shape
    at_frequency = np.hstack(
        [np.eye(frequencies), np.tile(usual.sum(axis=0), (frequencies, 1))]
    )
    at_position = np.hstack([np.tile(usual.sum(axis=1), (positions, 1)), np.eye(positions)])

    def each(rows: Array, weights: Array) -> tuple[tuple[float, float], ...]:
        alike = np.einsum("ab,bc,ac->a", rows, effects, rows)
        return tuple((float(w), float(a)) for w, a in zip(weights, alike, strict=True))

    return each(at_frequency, usual.sum(axis=1)), each(at_position, usual.sum(axis=0))
