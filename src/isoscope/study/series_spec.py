"""The options and the plan of work on a series of checkpoints."""

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Generic, Self, TypeVar, cast

from msgspec.structs import asdict

from isoscope.engine.plan import Plan
from isoscope.study.documents import DocumentsSpec, SurveyPlan
from isoscope.study.model import LoadSpec, ModelSpec
from isoscope.study.option import about
from isoscope.study.series import Checkpoint, is_series

R_co = TypeVar("R_co", covariant=True)
MODEL = (
    "A model: a folder, a GGUF file, or a name on the hub with @revision. Or a series: a "
    "folder of checkpoints, paths with commas between them, or a name with --revisions."
)

REVISIONS = (
    "Revisions of a model on the hub; pythia is its 154 steps, machina the 21 of the paper."
)


class SeriesLoadSpec(LoadSpec, frozen=True, kw_only=True):
    """Which revisions, and how checkpoints are loaded; a subclass has the argument."""

    revisions: Annotated[
        tuple[str, ...] | None, about(REVISIONS, "R,R", commas=True, local=True)
    ] = None
    free: Annotated[
        bool,
        about(
            "Delete each checkpoint that was downloaded once it is measured.",
            local=True,
            in_id=False,
        ),
    ] = False
    skip_broken: Annotated[
        bool,
        about(
            "Skip and name checkpoints that cannot be loaded.",
            local=True,
            in_id=False,  # a run that stopped at a broken checkpoint is resumed without it
        ),
    ] = False

    @property
    def names(self) -> tuple[str, ...]:
        """What the argument names: a folder, paths, or a name on the hub."""
        raise NotImplementedError

    def checkpoint(self, where: str | None) -> ModelSpec:
        """Return one checkpoint as surveys name models."""
        return ModelSpec(
            model=where,
            dtype=self.dtype,
            device=self.device,
            trust_remote_code=self.trust_remote_code,
        )


class SeriesPlan(Plan, frozen=True, kw_only=True):
    """The checkpoints, and the documents, sites and threads that all of them share."""

    stages: tuple[tuple[Checkpoint, ...], ...]
    survey: SurveyPlan
    vocabulary: str  # fingerprint of the tokenizer
    first: str  # the name of the checkpoint that the plan was made with

    def size(self, stage: int, unit: int) -> int | None:
        """Return the rows of a checkpoint in all passes."""
        return self.survey.total()


class ModelOrSeries(SeriesLoadSpec, frozen=True, kw_only=True):
    """Which model or which checkpoints, and how they are loaded."""

    model: Annotated[
        tuple[str, ...] | None,
        about(MODEL, "MODEL|SERIES", argument=True, commas=True, path=True, live=True),
    ]

    @property
    def names(self) -> tuple[str, ...]:
        """The model, the folder, the paths, or the name on the hub."""
        return self.model or ()

    @property
    def one(self) -> ModelSpec:
        """The model, or the first of several checkpoints."""
        return self.checkpoint(next(iter(self.names), None))


class ModelOrSeriesSpec(DocumentsSpec[R_co], Generic[R_co], frozen=True, kw_only=True):
    """The options of what takes one model, or the checkpoints of a series."""

    load: ModelOrSeries

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return a checked spec; of several checkpoints, that of their series."""
        named = values.get("model")
        if isinstance(named, str | PathLike) and Path(fspath(named)).expanduser().exists():
            values["model"] = [fspath(named)]  # a comma may be part of its name
        found = super().of(**values)
        names = found.load.model
        if names is None or not is_series(names, found.load.revisions):
            return found
        kind = cls.of_series()
        make = cast(Callable[..., Self], cls if issubclass(cls, kind) else kind)
        return make(**asdict(found))

    @classmethod
    def of_series(cls) -> "type[ModelOrSeriesSpec[object]]":
        """Return the spec of the same options for a series."""
        raise NotImplementedError
