"""The spec of `isoscope attention`."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Plan
from isoscope.errors import ConfigError
from isoscope.study.model import ModelSpec, Seed, WideCorpusSpec
from isoscope.study.option import about
from isoscope.study.run import Runnable
from isoscope.study.survey import SurveyPlan
from isoscope.types import Reading

ALL = "all"


class AttentionSpec(Runnable[Results[Reading]], frozen=True, kw_only=True):
    """Read every attention head of a model: its queries, its keys and its scores.

    Readings have sites `head.LAYER.HEAD`, with `enc.`, `dec.` or `cross.` in front in
    encoder-decoders. In models with rotary positions means are also read before rotation, in
    the group `before-rotation`. With `output` a run folder is written; an unfinished one is
    resumed.
    """

    command: ClassVar[str] = "attention"
    plans: ClassVar[type[Plan]] = SurveyPlan
    worker_at: ClassVar[str] = "isoscope.lab.attention.worker:AttentionWorker"
    torch_for: ClassVar[str] = "attention"

    load: ModelSpec
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
            default="torch's",
            local=True,
        ),
    ] = None

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
