"""The spec of `isoscope drift`."""

from typing import Annotated, ClassVar, Literal

from isoscope.display import Results
from isoscope.engine.plan import Plan, Unit
from isoscope.lab.drift.architecture import Shape
from isoscope.lab.drift.results import DriftRecord
from isoscope.study.option import MOST_THREADS, about
from isoscope.study.run import Runnable

NORMS = (0.0, 10.0, 27.7, 100.0, 300.0, 1000.0)
Arch = Literal["bert", "gpt2", "gpt_neox", "llama", "vit", "wav2vec2"]
Place = Literal["input", "norm-bias", "query-bias", "key-bias", "query-key-bias"]


class Initialisation(Unit, frozen=True, tag=True):
    """One draw of weights, inputs and directions, at every norm."""

    arch: str
    place: str
    seed: int


class SurveyedLayers(Unit, frozen=True, tag=True):
    """The layers of one survey."""

    run: str


class DriftPlan(Plan, frozen=True, kw_only=True):
    """Initialisations of every architecture and place, or surveys."""

    stages: tuple[tuple[Initialisation | SurveyedLayers, ...], ...]


class DriftSpec(Runnable[Results[DriftRecord]], frozen=True, kw_only=True):
    """Feed drifting input to untrained blocks, and compare with closed forms.

    One record per architecture, place of the drift, norm, block and quantity, and the norm at
    which the mean leaves the blocks as it entered. With `survey`, one record per run instead:
    the Spearman correlation of the norm of the mean and the mean cosine over its layers.
    """

    command: ClassVar[str] = "drift"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = DriftPlan
    worker_at: ClassVar[str] = "isoscope.lab.drift.worker:DriftWorker"

    arch: Annotated[
        tuple[Arch, ...],
        about("bert, gpt2, gpt_neox, llama, vit or wav2vec2.", "ARCH,ARCH", commas=True),
    ] = ("bert", "gpt2")
    at: Annotated[
        tuple[Place, ...],
        about(
            "Where drift is added: input, or norm-bias, query-bias, key-bias and "
            "query-key-bias of the first block.",
            "PLACE,PLACE",
            commas=True,
            noun="place of drift",
        ),
    ] = ("input",)
    norms: Annotated[
        tuple[float, ...], about("Norms of the drift.", "N,N", commas=True, least=0.0)
    ] = NORMS
    initialisations: Annotated[
        int, about("Draws of weights, inputs and directions.", "N", least=1)
    ] = 20
    tokens: Annotated[int, about("Length of the sequence.", "N", least=2)] = 512
    width: Annotated[int, about("Width of the residual stream.", "N", least=1)] = 768
    heads: Annotated[int, about("Heads of attention.", "N", least=1)] = 12
    inner: Annotated[
        int | None, about("Width of the MLP", "N", least=1, default="4 times the width")
    ] = None
    blocks: Annotated[int, about("Blocks in the stack.", "N", least=1)] = 1
    std: Annotated[
        float, about("Standard deviation of weights.", "X", least=1e-9, most=1e3)
    ] = 0.02
    seed: Annotated[int, about("The first seed.", "N", least=0, most=2**63 - 1)] = 0
    threads: Annotated[
        int,
        about(
            "Threads of each unit; they change the last bits.", "N", least=1, most=MOST_THREADS
        ),
    ] = 1
    survey: Annotated[
        tuple[str, ...] | None,
        about(
            "A survey whose drift and mean cosine are correlated; repeat it for more.",
            "RUN",
            path=True,
        ),
    ] = None

    @property
    def shape(self) -> Shape:
        """The sizes of blocks and inputs."""
        inner = 4 * self.width if self.inner is None else self.inner
        return Shape(self.width, self.heads, inner, self.tokens, self.blocks, self.std)
