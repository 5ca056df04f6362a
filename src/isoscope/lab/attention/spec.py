"""The specs of `isoscope attention`: of a model, and of the checkpoints of a series."""

from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, ClassVar, Self, cast

from isoscope.display import Results
from isoscope.engine.plan import Plan
from isoscope.errors import ConfigError
from isoscope.study.model import ModelSpec, Seed, WideCorpusSpec
from isoscope.study.option import MOST_THREADS, Part, about
from isoscope.study.run import Runnable
from isoscope.study.series import Checkpoint, is_series
from isoscope.study.survey import SurveyPlan
from isoscope.types import Reading

ALL = "all"
MODEL = (
    "A model: a folder, a GGUF file, or a name on the hub with @revision. Or a series: a "
    "folder of checkpoints, paths with commas between them, or a name with --revisions."
)


class HeadsModelSpec(Part, frozen=True, kw_only=True):
    """Which model or which checkpoints, and how they are loaded."""

    model: Annotated[
        tuple[str, ...] | None,
        about(MODEL, "MODEL|SERIES", argument=True, commas=True, path=True, live=True),
    ]
    revisions: Annotated[
        tuple[str, ...] | None,
        about(
            "Revisions of a model on the hub; pythia and machina name known lists of them.",
            "R,R",
            commas=True,
            local=True,
        ),
    ] = None
    free: Annotated[
        bool,
        about("Delete each checkpoint that was downloaded once it is read.", local=True),
    ] = False
    skip_broken: Annotated[
        bool, about("Skip and name checkpoints that cannot be loaded.", local=True)
    ] = False
    dtype: Annotated[
        str | None,
        about("Precision: float32, bfloat16 or float16", "D", default="float32", local=True),
    ] = None
    device: Annotated[str, about("Device: cpu, cuda, cuda:1 or mps.", "D", local=True)] = "cpu"
    trust_remote_code: Annotated[
        bool, about("Run code that comes with the model.", local=True)
    ] = False

    def one(self, where: str | None = None) -> ModelSpec:
        """Return the model, or one checkpoint, as surveys name models."""
        names = self.model or (None,)
        return ModelSpec(
            model=where or names[0],
            dtype=self.dtype,
            device=self.device,
            trust_remote_code=self.trust_remote_code,
        )


class AttentionSpec(Runnable[Results[Reading]], frozen=True, kw_only=True):
    """Read every attention head of a model: its queries, its keys and its scores.

    Readings have sites `head.LAYER.HEAD`, with `enc.`, `dec.` or `cross.` in front in
    encoder-decoders. In models with rotary positions means are also read before rotation, in
    the group `before-rotation`. Of a series of checkpoints all are read over the same
    documents, and readings have a `step`. With `output` a run folder is written; an unfinished
    one is resumed.
    """

    command: ClassVar[str] = "attention"
    plans: ClassVar[type[Plan]] = SurveyPlan
    worker_at: ClassVar[str] = "isoscope.lab.attention.worker:AttentionWorker"
    torch_for: ClassVar[str] = "attention"

    load: HeadsModelSpec
    read: WideCorpusSpec = WideCorpusSpec()
    queries: Annotated[
        str,
        about(
            "Queries per document whose scores are computed: a number, or all.",
            "N",
            numbers=True,
        ),
    ] = "16"
    tokens: Annotated[
        int | None, about("Stop after about N tokens.", "N", least=2, local=True)
    ] = 100_000
    length: Annotated[int, about("Cut documents to N tokens.", "N", least=2)] = 512
    batch: Annotated[int, about("At most N documents per batch.", "N", least=1, local=True)] = (
        32
    )
    unit: Annotated[
        int | None,
        about(
            "Tokens per checkpointed unit.",
            "N",
            least=1,
            default="a quarter of all, 32768 to 131072",
            local=True,
        ),
    ] = None
    device_map: Annotated[
        str | None, about("auto spreads a large model over devices.", "MAP", local=True)
    ] = None
    untrained: Annotated[
        bool, about("Use the same architecture with random weights.", local=True)
    ] = False
    prompt: Annotated[
        str | None, about("Text before every document, or the name of a prompt.", "P")
    ] = None
    no_bos: Annotated[
        bool, about("Drop the token that the model's files put at the beginning of texts.")
    ] = False
    sinks: Annotated[
        float,
        about(
            "Call a token a norm sink above K times the median norm of its document.",
            "K",
            least=1.0,
        ),
    ] = 10.0
    draw: Seed = Seed()
    threads: Annotated[
        int | None,
        about(
            "Threads per unit; their number changes the last bits",
            "N",
            least=1,
            most=MOST_THREADS,
            default="torch's",
            local=True,
        ),
    ] = None

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
        kind = cls if issubclass(cls, HeadSeriesSpec) else HeadSeriesSpec
        fields = {name: getattr(found, name) for name in found.__struct_fields__}
        return cast(Self, kind(**fields))

    @property
    def sample(self) -> int | None:
        """How many queries of a document are looked at; None: all of them."""
        if self.queries == ALL:
            return None
        number = int(self.queries) if self.queries.isdecimal() else 0
        if number < 1:
            raise ConfigError(
                f"expected a number of queries or all, got {self.queries!r}",
                hint="--queries=16 computes the scores of 16 queries of each document",
                slug="queries",
            )
        return number


class HeadSeriesPlan(Plan, frozen=True, kw_only=True):
    """The checkpoints, and the documents, heads and threads that all of them share."""

    stages: tuple[tuple[Checkpoint, ...], ...]
    heads: SurveyPlan
    shapes: dict[str, tuple[int, int, int]]  # layer: heads, heads of keys and their width
    vocabulary: str  # fingerprint of the tokenizer
    first: str  # the name of the checkpoint that the plan was made with

    def size(self, stage: int, unit: int) -> int | None:
        """Return the tokens of a checkpoint."""
        return self.heads.total()


class HeadSeriesSpec(AttentionSpec, frozen=True, kw_only=True):
    """Read every attention head of every checkpoint of a series."""

    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = HeadSeriesPlan
    worker_at: ClassVar[str] = "isoscope.lab.attention.series:HeadSeriesWorker"
