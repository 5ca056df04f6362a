"""The spec of `isoscope norm`."""

from typing import Annotated, ClassVar, Literal

from isoscope.display import Results
from isoscope.engine.plan import Plan, Unit
from isoscope.lab.norm.results import SIGMAS, Norm
from isoscope.study.model import ModelSpec
from isoscope.study.option import about
from isoscope.study.run import Runnable


class AllNorms(Unit, frozen=True, tag=True):
    """All norms of a model: reading parameters takes no time worth sharing."""


class NormPlan(Plan, frozen=True, kw_only=True):
    """One unit."""

    stages: tuple[tuple[AllNorms, ...], ...] = ((AllNorms(),),)


class NormSpec(Runnable[Results[Norm]], frozen=True, kw_only=True):
    """Describe what the norms of a model hold, and what the final one does to the mean cosine.

    Gain and bias norms, their ratio r and the reference r^2 / (1 + r^2); dimensions whose
    gain or bias is more than `sigmas` standard deviations from the mean. With a run of the
    model, the readings before, between and after the final norm, and what gain and bias add,
    one after the other.
    """

    command: ClassVar[str] = "norm"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = NormPlan
    worker_at: ClassVar[str] = "isoscope.lab.norm.worker:NormWorker"
    torch_for: ClassVar[str] = "norm"

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
