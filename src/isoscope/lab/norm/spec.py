"""The spec of `isoscope norm`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from isoscope.engine import Notify
from isoscope.study.model import ModelSpec
from isoscope.study.option import about
from isoscope.study.plan import Plan, Unit
from isoscope.study.run import Live, Planner, Runnable

if TYPE_CHECKING:
    from isoscope.lab.norm.final_norm import FinalNorm
    from isoscope.lab.norm.outliers import RoleOutliers
    from isoscope.lab.norm.steps import NormSteps

SIGMAS = 3.0


class AllNorms(Unit, frozen=True, tag=True):
    """All norms of a model: reading parameters takes no time worth sharing."""


class NormPlan(Plan, frozen=True, kw_only=True):
    """One unit."""

    stages: tuple[tuple[AllNorms, ...], ...] = ((AllNorms(),),)


@dataclass(frozen=True)
class NormsFound:
    """What the norms hold, and what the final one does to the rows of a run."""

    model: str
    final: "list[FinalNorm]"
    outliers: "list[RoleOutliers]"
    steps: "list[NormSteps]"
    problems: list[str]
    measures: tuple[str, ...]  # of the run, in its table; all there are if none are named
    sigmas: float


class NormSpec(Runnable[NormsFound], frozen=True, kw_only=True):
    """What the norms of a model hold, and what the final one does."""

    command: ClassVar[str] = "norm"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = NormPlan

    load: ModelSpec
    run: Annotated[
        str | None,
        about(
            "A survey of this model: what it reads before and after the norm.", "RUN", path=True
        ),
    ] = None
    measures: Annotated[
        tuple[str, ...] | None,
        about(
            "A measure of the run; repeat it for more than one.", "NAME", flag="-m/--measure"
        ),
    ] = None
    variant: Annotated[
        Literal["all", "no-special", "no-sink"],
        about("Which rows of the run: all, no-special or no-sink.", "NAME"),
    ] = "all"
    sigmas: Annotated[
        float,
        about("Name parameters that are K standard deviations from the mean.", "K", least=0.0),
    ] = SIGMAS

    def open(self, notify: Notify, live: Live | None = None) -> Planner[NormsFound]:
        """Read the run, then load the model."""
        from isoscope.study.model import need_torch

        need_torch("norm")
        from isoscope.lab.norm.worker import NormWorker

        return NormWorker(self, notify, live or {})
