"""The spec of `isoscope trajectory`."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, cast

from isoscope.display import Results
from isoscope.engine.plan import Plan
from isoscope.lab.trajectory.results import Course
from isoscope.study.model import ModelSpec
from isoscope.study.option import Part, about
from isoscope.study.series import Checkpoint
from isoscope.study.survey import SurveyedSpec, SurveyPlan, SurveySpec

SERIES = (
    "A folder of checkpoints (step_N, checkpoint-N), paths with commas between them, or a name "
    "on the hub with --revisions."
)


class SeriesSpec(Part, frozen=True, kw_only=True):
    """Which checkpoints, and how they are loaded."""

    series: Annotated[
        tuple[str, ...], about(SERIES, "SERIES", argument=True, commas=True, path=True)
    ]
    revisions: Annotated[
        tuple[str, ...] | None,
        about(
            "Revisions of a model on the hub; pythia is its 154 steps, machina the 21 of the "
            "paper.",
            "R,R",
            commas=True,
            local=True,
        ),
    ] = None
    free: Annotated[
        bool, about("Delete each checkpoint that was downloaded once it is measured.")
    ] = False
    dtype: Annotated[
        str | None,
        about("Precision: float32, bfloat16 or float16", "D", default="float32", local=True),
    ] = None
    device: Annotated[str, about("Device: cpu, cuda, cuda:1 or mps.", "D", local=True)] = "cpu"
    trust_remote_code: Annotated[
        bool, about("Run code that comes with the model.", local=True)
    ] = False

    def model(self, where: str) -> ModelSpec:
        """Return one checkpoint as surveys name models."""
        return ModelSpec(
            model=where,
            dtype=self.dtype,
            device=self.device,
            trust_remote_code=self.trust_remote_code,
        )


class TrajectoryPlan(Plan, frozen=True, kw_only=True):
    """The checkpoints, and the documents, sites and threads that all of them share."""

    stages: tuple[tuple[Checkpoint, ...], ...]
    survey: SurveyPlan
    widths: dict[str, int]  # of all sites, as the first checkpoint has them
    vocabulary: str  # fingerprint of the tokenizer
    first: str  # the name of the checkpoint that the plan was made with

    def size(self, stage: int, unit: int) -> int | None:
        """Return the rows of a checkpoint in all passes."""
        return self.survey.total()


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
    skip_broken: Annotated[bool, about("Skip and name checkpoints that cannot be loaded.")] = (
        False
    )
    no_theories: Annotated[
        bool, about("Skip the tests of older theories: matrices by band, hull, final norm.")
    ] = False

    def resolve(self, content: Mapping[str, str]) -> dict[str, object]:
        """Return what the id hashes: what is done with files changes no number.

        A run that stopped at a broken checkpoint is resumed without it.
        """
        found = super().resolve(content)
        options = cast(dict[str, object], found["options"])
        for name in ("free", "skip_broken"):
            del options[name]
        return found

    def survey_of(self, where: str) -> SurveySpec:
        """Return the survey of one checkpoint."""
        shared = {
            name: getattr(self, name)
            for name in SurveySpec.__struct_fields__
            if name not in ("load",)
        }
        return SurveySpec(load=self.load.model(where), **shared)
