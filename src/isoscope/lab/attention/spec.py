"""The specs of `isoscope attention`: of a model, and of the checkpoints of a series."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Plan
from isoscope.errors import ConfigError
from isoscope.study.documents import SurveyPlan
from isoscope.study.option import about
from isoscope.study.series_spec import ModelOrSeriesSpec, SeriesPlan
from isoscope.types import Reading

ALL = "all"


class AttentionSpec(ModelOrSeriesSpec[Results[Reading]], frozen=True, kw_only=True):
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

    queries: Annotated[
        str,
        about(
            "Queries per document whose scores are computed: a number, or all.",
            "N",
            numbers=True,
        ),
    ] = "16"

    @classmethod
    def of_series(cls) -> "type[HeadSeriesSpec]":
        """Return the spec of the same options for a series."""
        return HeadSeriesSpec

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


class HeadSeriesPlan(SeriesPlan, frozen=True, kw_only=True):
    """What all checkpoints share, the shapes of their heads included."""

    shapes: dict[str, tuple[int, int, int]]  # layer: heads, heads of keys and their width


class HeadSeriesSpec(AttentionSpec, frozen=True, kw_only=True):
    """Read every attention head of every checkpoint of a series."""

    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = HeadSeriesPlan
    worker_at: ClassVar[str] = "isoscope.lab.attention.series:HeadSeriesWorker"
