"""The spec of `isoscope trajectory`."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Plan
from isoscope.lab.trajectory.results import Course
from isoscope.study.option import about
from isoscope.study.series_spec import SeriesLoadSpec, SeriesPlan
from isoscope.study.survey import SurveyedSpec, SurveySpec

SERIES = (
    "A folder of checkpoints (step_N, checkpoint-N), paths with commas between them, or a name "
    "on the hub with --revisions."
)


class SeriesSpec(SeriesLoadSpec, frozen=True, kw_only=True):
    """Which checkpoints, and how they are loaded."""

    series: Annotated[
        tuple[str, ...], about(SERIES, "SERIES", argument=True, commas=True, path=True)
    ]

    @property
    def names(self) -> tuple[str, ...]:
        """The folder, the paths, or the name on the hub."""
        return self.series


class TrajectoryPlan(SeriesPlan, frozen=True, kw_only=True):
    """What all checkpoints share, their widths included."""

    widths: dict[str, int]  # of all sites, as the first checkpoint has them


class TrajectorySpec(SurveyedSpec[Results[Course]], frozen=True, kw_only=True):
    """Survey every checkpoint of a series over the same documents, and say what changes when.

    Returns one record for each measure at each site: its curve over the steps with intervals,
    differences to the first step paired by document, when it first differs (onset), and where
    it leaves a smooth trend (sudden). With `output` a run folder is written; an unfinished one
    with the same options is resumed.
    """

    command: ClassVar[str] = "trajectory"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = TrajectoryPlan
    worker_at: ClassVar[str] = "isoscope.lab.trajectory.worker:TrajectoryWorker"
    torch_for: ClassVar[str] = "a trajectory"

    load: SeriesSpec
    metrics: Annotated[
        str | None,
        about(
            "Metrics by step: a csv with a column step, or trainer_state.json.",
            "FILE",
            path=True,
        ),
    ] = None
    no_theories: Annotated[
        bool, about("Skip the tests of older theories: matrices by band, hull, final norm.")
    ] = False

    def survey_of(self, where: str) -> SurveySpec:
        """Return the survey of one checkpoint."""
        shared = {
            name: getattr(self, name)
            for name in SurveySpec.__struct_fields__
            if name not in ("load",)
        }
        return SurveySpec(load=self.load.checkpoint(where), **shared)
