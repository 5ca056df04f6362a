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
`frequency` and `position` go up to what may be there without having been told from the mean,
and that of `mean` down by as much.

What it cannot tell apart: a cause that acts along a single axis is `dimensions`, whatever
drives it; whatever frequency and position do together that does not add up is shared among
them; what no band, sink or dimension shows (topic, language) is in `mean`, or in nothing;
an effect that every band has at least a little of is, to that extent, the mean's.
"""

from dataclasses import dataclass

import numpy as np

from isoscope.causes.additive import fitted
from isoscope.causes.cloud import Cloud
from isoscope.causes.dimensions import kept
from isoscope.causes.shares import ORDER, Told, by_dimension, noises, told
from isoscope.errors import UndefinedError
from isoscope.measures.interval import LEAST_DOCUMENTS, around, standard_error
from isoscope.types import Array

__all__ = ["ORDER", "Attribution", "Share", "attributed"]


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
    noise = noises(cloud)
    found = told(cloud, noise)
    others = [told(each, noise).shares for each in without]
    unknown = {
        "frequency": not cloud.frequencies_known,
        "position": not cloud.positions_known,
    }
    shares = {
        name: _widened(
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


def _share(cloud: Cloud, value: float, without: list[float]) -> Share:
    if not without:
        return Share(value, None, None)
    error = standard_error(value, np.array(without), cloud.sizes)
    low, high = around(value, error, cloud.groups, logarithmic=False)
    return Share(value, low, high)


def _widened(share: Share, name: str, found: Told) -> Share:
    """Return a share whose interval allows for what cannot be told, whatever the documents.

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
    # What is not told is somewhere between nothing and everything; only noise goes beyond.
    low, high = max(share.value - below, 0.0), min(share.value + above, 1.0)
    return Share(share.value, min(share.low, low), max(share.high, high))


def _within(
    cloud: Cloud,
) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
    """Return for each band its share of the rows and the mean cosine within it."""
    usual = cloud.crossed.sum(axis=0) / cloud.crossed.sum()
    model = fitted(cloud, kept(cloud.units.shape[2], ()))

    def each(block: slice, weights: Array) -> tuple[tuple[float, float], ...]:
        lines = np.eye(len(model.uncleaned))[block]
        lines[:, 0] = 1
        alike = np.einsum("ab,bc,ac->a", lines, model.uncleaned, lines)
        return tuple((float(w), float(a)) for w, a in zip(weights, alike, strict=True))

    frequency, position = model.blocks
    return each(frequency, usual.sum(axis=1)), each(position, usual.sum(axis=0))
