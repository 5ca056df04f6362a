"""The specs of `isoscope tangent`: of a model, and of the checkpoints of a series."""

from typing import Annotated, ClassVar, Literal

from isoscope.display import Results
from isoscope.engine.plan import Packed, Plan
from isoscope.errors import ConfigError
from isoscope.measures.proxy import Method
from isoscope.measures.tangent_anisotropy import CONTROLS
from isoscope.study.documents import SurveyPlan
from isoscope.study.measure_choice import Computed
from isoscope.study.model import LabelledCorpusSpec
from isoscope.study.option import about
from isoscope.study.series_spec import ModelOrSeries, ModelOrSeriesSpec, SeriesPlan
from isoscope.types import Reading

Fit = Literal["early", "each"]


class TangentPlan(SurveyPlan, frozen=True, kw_only=True):
    """Documents of the proxy, then those of gradients: first an early and then a late half."""

    first: int  # batch of gradients
    late: int  # batch of the late half of them


class TangentSpec(ModelOrSeriesSpec[Results[Reading]], frozen=True, kw_only=True):
    """Read how much of the gradients of a loss lies in the main directions of activations.

    Readings have sites `grad.LAYER` (the loss by the residual stream, one row per token with a
    target) and `gradw.NAME` (the gradient of a linear map's weight, one matrix per
    micro-batch). Groups of them are controls (`complement`, `random`, `shuffled`), halves of
    the documents, frequency bands of tokens, and directions of the proxy. Of a series of
    checkpoints all are read over the same documents, and readings have a `step`. With `output`
    a run folder is written; an unfinished one is resumed.
    """

    command: ClassVar[str] = "tangent"
    plans: ClassVar[type[Plan]] = TangentPlan
    worker_at: ClassVar[str] = "isoscope.lab.tangent.worker:TangentWorker"
    torch_for: ClassVar[str] = "tangent"

    load: ModelOrSeries  # named again, so that it stays the first argument
    read: LabelledCorpusSpec = LabelledCorpusSpec()
    sites: Annotated[
        tuple[str, ...] | None,
        about(
            "Sites: grad, grad.3, gradw.NAME; gradw.h.3 takes all maps of a block",
            "S,S",
            default="grad",
            commas=True,
        ),
    ] = None
    loss: Annotated[
        str | None,
        about(
            "The loss: causal, masked, classification or contrastive",
            "LOSS",
            default="what the model has a head for",
        ),
    ] = None
    proxy: Annotated[
        Method, about("How the proxy is fitted to activations: pca or semi-nmf.", "M")
    ] = "pca"
    rank: Annotated[
        int | None,
        about(
            "Directions of the proxy",
            "K",
            least=1,
            default="16, at most a quarter of the width",
        ),
    ] = None
    explained: Annotated[
        float | None,
        about(
            "In place of a rank: as many directions as hold this share of the variance.",
            "S",
            least=0.0,
            most=1.0,
        ),
    ] = None
    early: Annotated[
        float,
        about(
            "Share of the documents, and of the training, that the proxy is fitted to.",
            "S",
            least=0.01,
            most=0.9,
        ),
    ] = 0.3
    fit: Annotated[
        Fit,
        about(
            "Of a series: one proxy of its early checkpoints, or each checkpoint its own.",
            "early|each",
        ),
    ] = "early"
    variant: Annotated[
        Literal["all", "no-special", "no-sink"],
        about("Activations of the proxy: all, no-special or no-sink.", "NAME"),
    ] = "all"
    controls: Annotated[
        int, about("Random subspaces that are drawn for p-values.", "N", least=1)
    ] = CONTROLS
    zeta: Annotated[float, about("Shrinkage of IsoScore*.", "Z", least=0.0, most=1.0)] = 0.2
    frequencies: Annotated[
        str | None,
        about(
            "Token counts by id (npy) or by token (json)",
            "FILE",
            default="of the corpus",
            path=True,
        ),
    ] = None

    @classmethod
    def of_series(cls) -> "type[TangentSeriesSpec]":
        """Return the spec of the same options for a series."""
        return TangentSeriesSpec

    def check(self) -> None:
        """Refuse options that exclude each other."""
        if self.rank is not None and self.explained is not None:
            raise ConfigError(
                "cannot take both a rank and a share of the variance",
                hint="leave out --rank or --explained",
                slug="tangent-rank",
            )
        if self.explained is not None and self.proxy != "pca":
            raise ConfigError(
                f"cannot choose the rank of {self.proxy} by its share of the variance",
                hint="name a --rank, or use --proxy=pca",
                slug="tangent-rank",
            )

    def options_of_measures(self) -> Computed:
        """Return what measures are computed with."""
        return {"zeta": self.zeta, "controls": self.controls, "documents": True}


class TangentSeriesPlan(SeriesPlan, frozen=True, kw_only=True):
    """The checkpoints, and the proxy of the early ones where all share it."""

    survey: TangentPlan
    widths: dict[str, int]  # of all sites, as the first checkpoint has them
    sites: tuple[str, ...] = ()
    bases: tuple[Packed, ...] = ()  # of the shared proxy, by site; none where each has its own
    centres: tuple[Packed, ...] = ()
    shares: tuple[Packed, ...] = ()


class TangentSeriesSpec(TangentSpec, frozen=True, kw_only=True):
    """Read the gradients of every checkpoint of a series."""

    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = TangentSeriesPlan
    worker_at: ClassVar[str] = "isoscope.lab.tangent.series:TangentSeriesWorker"
