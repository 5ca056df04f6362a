"""What the mean cosine of a cloud is owed to, on two scales that are never added.

By removal, as shares of the mean cosine C: sinks, by how much it falls without their rows, and
dimensions, what the few that stand out carry of it. By dependence, as parts of T, the mean
cosine of rows of the same frequency and position (`dependence`): frequency, position, and what
is left whatever the two are, the mean that all rows share.

All products are of rows of different document groups and unclipped, so that a share may be a
little below zero; intervals leave out a group in turn. What no band, sink or dimension shows
(topic, language) is in no share.
"""

import numpy as np

from isoscope.accumulate import ReservoirSummary
from isoscope.causes.cloud import CloudSums
from isoscope.causes.dependence import Dependences, dependences
from isoscope.causes.dimensions import RogueDimensions, cosine_without, rogue_dimensions
from isoscope.causes.pairs import GroupSizes, Share, mean_cosine
from isoscope.dataclass import dataclass
from isoscope.errors import UndefinedError
from isoscope.types import CAUSE_ORDER as ORDER

__all__ = ["ORDER", "Attribution", "attribute"]


@dataclass(frozen=True)
class Attribution:
    """The mean cosine of a cloud and what it is owed to; None where that is undefined."""

    mean_cosine: Share  # of all rows
    without_sinks: Share  # of the rows that are not sinks
    sinks: Share | None  # share of the mean cosine
    dimensions: RogueDimensions | None
    zeroed: tuple[Share, Share] | None  # of sampled rows: before and after zeroing them
    dependences: Dependences | None
    sink_rows: int
    rows: int
    width: int
    documents: int


def attribute(cloud: CloudSums, sample: ReservoirSummary | None = None) -> Attribution:
    """Return what the mean cosine of a cloud is owed to.

    `sample` has rows that are not sinks, to set dimensions to zero in them.
    """
    if cloud.groups < 2:
        raise _nothing("expected rows of at least 2 documents, got 1")
    groups = GroupSizes(cloud.sizes, cloud.documents)
    units, rows = cloud.units.sum(axis=(1, 2)), cloud.rows.sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):  # a group may have all rows
        whole = mean_cosine(units + cloud.sinks, rows + cloud.sink_rows)
        others = mean_cosine(units, rows)
    every, left = groups.share(whole), groups.share(others)
    known = cloud.frequencies_known or cloud.positions_known
    dependent = dependences(cloud, groups) if known else None
    if dependent is not None and not dependent.whole.is_positive:
        dependent = None
    if not every.is_positive and dependent is None:
        raise _nothing(f"expected a mean cosine above zero, got {every.value:.2g}")
    rogue = rogue_dimensions(cloud, groups) if left.is_positive else None
    zeroed = None
    if rogue is not None and rogue.named and sample is not None:
        zeroed = cosine_without(sample, tuple(rogue.named))
    return Attribution(
        mean_cosine=every,
        without_sinks=left,
        sinks=groups.share(1 - others / whole) if every.is_positive else None,
        dimensions=rogue,
        zeroed=zeroed,
        dependences=dependent,
        sink_rows=int(cloud.sink_rows.sum()),
        rows=int(cloud.sizes.sum()),
        width=cloud.width,
        documents=cloud.documents,
    )


def _nothing(problem: str) -> UndefinedError:
    return UndefinedError(
        problem,
        hint="rows have no direction in common: there is nothing to explain",
        slug="nothing-to-explain",
    )
