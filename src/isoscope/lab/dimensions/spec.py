"""The spec of `isoscope dimensions`."""

from typing import ClassVar

from isoscope.display import Results
from isoscope.lab.dimensions.results import SiteDimensions
from isoscope.study.plan import Plan
from isoscope.study.run import Runnable
from isoscope.study.runs import SavedPlan, SavedSites


class DimensionsSpec(Runnable[Results[SiteDimensions]], frozen=True, kw_only=True):
    """Find which dimensions carry the mean cosine of each site, and what is left without them.

    With their kurtosis, and how much of the cosines of whole vectors (r squared, over the
    pairs of the sample) is left when the top 1, 3 and 5 are removed.
    """

    command: ClassVar[str] = "dimensions"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = SavedPlan
    worker_at: ClassVar[str] = "isoscope.lab.dimensions.worker:DimensionsWorker"

    read: SavedSites
