"""The spec of `isoscope explain`, and its worker, which only reads a saved run."""

from typing import ClassVar, TypeAlias, cast

import msgspec

from isoscope.causes.cause import Cause, site_causes
from isoscope.display import RecordLayout, Results
from isoscope.engine import Scratch, Ticks
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.lab.explain.heads import HEAD_COSINES, HeadCosines, head_cosines
from isoscope.lab.explain.results import CAUSES
from isoscope.study.run import Finished
from isoscope.study.saved_runs import SavedRunSpec, SavedRunWorker, SavedSite

Explained: TypeAlias = Cause | HeadCosines


class ExplainSpec(SavedRunSpec[Results[Explained]], frozen=True, kw_only=True):
    """Explain what the mean cosine of each site is owed to.

    Sinks and dimensions have shares of the mean cosine by removal; frequency, position and
    the mean have shares of the mean cosine of rows of the same frequency and position, which
    add up to one. The two scales are not added. Of a run of `isoscope attention`, the cosines
    within queries and within keys of each head are returned, beside the cosine of their site.
    """

    command: ClassVar[str] = "explain"
    worker_at: ClassVar[str] = "isoscope.lab.explain.spec:ExplainWorker"


class SiteCauses(msgspec.Struct, frozen=True):
    """The result of one site."""

    causes: list[Cause]
    problem: str = ""  # why there are none


class ExplainWorker(SavedRunWorker[Results[Explained]]):
    """An open run."""

    def run(self, unit: object, _scratch: Scratch, _ticks: Ticks, /) -> SiteCauses:
        """Return the causes of one site, or why they cannot be determined."""
        assert isinstance(unit, SavedSite)
        if self.has_heads:
            return SiteCauses([])
        held = self.saved.survey_of(unit.site).held
        try:
            return SiteCauses(site_causes(held, unit.site, self.read.variant, self.name))
        except (UndefinedError, TooFewRowsError) as problem:
            return SiteCauses([], f"{unit.site}: {problem.problem}")

    @property
    def has_heads(self) -> bool:
        """Whether it is a run of attention heads, which keeps no causes."""
        return self.saved.origin.kind == "attention"

    def finish(self, done: Finished) -> Results[Explained]:
        """Return the causes of all sites, or the cosines of all heads."""
        if self.has_heads:
            heads: list[Explained] = [*head_cosines(self.saved.readings, self.read.sites)]
            if heads:
                return Results(heads, cast("RecordLayout[Explained]", HEAD_COSINES))
        sites = msgspec.convert(done.records, list[SiteCauses])
        found: list[Explained] = [cause for each in sites for cause in each.causes]
        left_out = [each.problem for each in sites if each.problem]
        if not found:
            raise UndefinedError(
                left_out[0] if left_out else f"expected sites in {self.name!r}, got none",
                hint="there is no mean cosine to explain at any site of this run",
                slug="nothing-to-explain",
            )
        return Results(found, cast("RecordLayout[Explained]", CAUSES), left_out=left_out)
