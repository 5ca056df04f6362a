"""The spec of `isoscope nursery train`."""

from typing import Annotated, ClassVar, Literal

import numpy as np

from isoscope.display import Results
from isoscope.engine.plan import Plan, Unit
from isoscope.errors import ConfigError
from isoscope.lab.nursery.results import TrainedStep
from isoscope.memory import as_bytes, free_memory
from isoscope.study.model import CorpusSpec
from isoscope.study.option import MOST_THREADS, Part, about
from isoscope.study.run import Runnable

HEAD = 16  # numbers of a head, where their number is not set


class Shape(Part, frozen=True, kw_only=True):
    """How large a model is."""

    layers: Annotated[int, about("Blocks of the model.", "N", least=1, most=100)] = 4
    width: Annotated[int, about("Numbers of a hidden state.", "N", least=2, most=2**16)] = 128
    heads: Annotated[
        int | None,
        about("Attention heads of a block", "N", least=1, default="one per 16 of the width"),
    ] = None
    vocabulary: Annotated[
        int, about("Tokens of the vocabulary; of a synthetic language, words.", "N", least=2)
    ] = 2048

    @property
    def head_count(self) -> int:
        """The number of heads."""
        return self.heads or max(1, self.width // HEAD)


class Training(Part, frozen=True, kw_only=True):
    """How a model is trained."""

    steps: Annotated[int, about("Steps of the optimiser.", "N", least=1)] = 600
    batch: Annotated[int, about("Texts or images of a step.", "N", least=1)] = 16
    length: Annotated[int, about("Tokens of a text.", "N", least=2)] = 128
    learning_rate: Annotated[
        float, about("Largest learning rate; it rises, then falls.", "R", least=0.0)
    ] = 2e-3
    checkpoints: Annotated[
        int, about("Checkpoints after step 0, log-spaced, the last step among them.", "N",
                   least=1, most=10**5)
    ] = 12  # fmt: skip
    seed: Annotated[
        int, about("Seed of weights, texts and their order.", "N", least=0, most=2**63 - 1)
    ] = 0
    threads: Annotated[
        int | None,
        about(
            "Threads; their number changes the last bits",
            "N",
            least=1,
            most=MOST_THREADS,
            default="torch's",
        ),
    ] = None

    @property
    def saved_steps(self) -> list[int]:
        """The steps of which checkpoints are saved: 0, and log-spaced ones up to the last."""
        spaced = np.geomspace(1, self.steps, self.checkpoints) if self.checkpoints > 1 else []
        return sorted({0, *(round(float(each)) for each in spaced), self.steps})


class Switches(Part, frozen=True, kw_only=True):
    """The ingredients under dispute."""

    tied: Annotated[bool, about("Use one matrix as embedding and unembedding.")] = False
    norm_place: Annotated[
        Literal["pre", "post"], about("Norms before or after the parts of a block.", "PLACE")
    ] = "pre"
    norm_kind: Annotated[Literal["layer", "rms"], about("LayerNorm or RMSNorm.", "KIND")] = (
        "layer"
    )
    no_final_bias: Annotated[bool, about("Give the final norm no bias.")] = False
    mixer: Annotated[
        Literal["attention", "convolution"],
        about("What mixes positions: attention, or a convolution of equal size.", "MIXER"),
    ] = "attention"
    objective: Annotated[
        Literal["causal", "masked"] | None,
        about("Predict the next token or masked ones", "WHAT", default="causal; bert: masked"),
    ] = None
    residual: Annotated[
        Literal["parallel", "sequential"] | None,
        about(
            "Attention and feed-forward side by side or in turn",
            "HOW",
            default="parallel; with post-norm in turn",
        ),
    ] = None


class Train(Unit, frozen=True, tag=True):
    """The whole training: the unit that `scratch` lets resume."""


class TrainPlan(Plan, frozen=True, kw_only=True):
    """One unit, and how many tokens it takes."""

    stages: tuple[tuple[Train, ...], ...]
    tokens: int

    def size(self, stage: int, unit: int) -> int | None:
        """Return the tokens of the training."""
        return self.tokens


class TrainSpec(Runnable[Results[TrainedStep]], frozen=True, kw_only=True):
    """Train a small model from its first step, and save checkpoints at log-spaced steps.

    With `output` a folder is written that holds `step_N` folders, as transformers loads them,
    and `metrics.csv`; an unfinished one with the same options is resumed to the same weights.
    Without it only the losses are returned.
    """

    command: ClassVar[str] = "nursery train"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = TrainPlan
    worker_at: ClassVar[str] = "isoscope.lab.nursery.worker:TrainWorker"
    torch_for: ClassVar[str] = "a nursery"

    read: CorpusSpec = CorpusSpec()
    language: Annotated[
        Literal["zipf", "uniform"] | None,
        about("Words of a synthetic language, of these frequencies, instead of a text.", "F"),
    ] = None
    arch: Annotated[
        Literal["nursery", "gpt_neox", "gpt2", "llama", "bert", "vit"],
        about(
            "nursery, the model with switches; gpt_neox, gpt2, llama, bert; or vit, on "
            "generated images.",
            "NAME",
        ),
    ] = "nursery"
    switches: Switches = Switches()
    shape: Shape = Shape()
    tokenizer: Annotated[
        Literal["bpe", "bytes"], about("How texts are cut: bpe, or one token per byte.", "HOW")
    ] = "bpe"
    hold_out: Annotated[
        float, about("Share of the documents that is held out.", "SHARE", least=0.0, most=0.9)
    ] = 0.1
    train: Training = Training()
    penalty: Annotated[
        str | None,
        about("Add a penalty: istar, debiased, cosreg or mean-cosine.", "NAME"),
    ] = None
    weight: Annotated[float, about("Weight of the penalty.", "W")] = 1.0
    watch: Annotated[
        int | None, about("Watch the layers every N steps; see watch.csv.", "N", least=1)
    ] = None

    def check(self) -> None:
        """Refuse options that do not go together."""
        given = {
            name: self.value(name)
            for name in Switches.__struct_fields__
            if self.value(name) != getattr(Switches(), name)
        }
        own = {"objective"} if self.arch in ("bert", "nursery") else set[str]()
        if self.arch != "nursery" and given.keys() - own:
            flag = next(iter(given.keys() - own)).replace("_", "-")
            raise ConfigError(
                f"cannot set --{flag} of {self.arch}, which comes from its own config",
                hint="the switches are those of --arch=nursery",
                slug="nursery-switch",
            )
        if self.arch == "bert" and self.switches.objective == "causal":
            raise ConfigError(
                "cannot set --objective=causal of bert, which predicts masked tokens",
                hint="leave it out, or take --arch=nursery",
                slug="nursery-switch",
            )
        if self.switches.norm_place == "post" and self.switches.residual == "parallel":
            raise ConfigError(
                "cannot set --residual=parallel with --norm-place=post",
                hint="norms after a block's parts stand in turn with them: leave it out",
                slug="nursery-switch",
            )
        if self.shape.width % self.shape.head_count:
            raise ConfigError(
                f"expected a width that {self.shape.head_count} heads divide, got "
                f"{self.shape.width}",
                hint="set --heads, or take a --width that is a multiple of 16",
                slug="nursery-width",
            )
        # Four copies of the weights: themselves, gradients and what Adam keeps.
        inner = 12 * self.shape.layers * self.shape.width**2
        needed, free = 4 * 4 * inner, free_memory()
        if needed > free:
            raise ConfigError(
                f"training {self.shape.layers} blocks of width {self.shape.width} needs about "
                f"{as_bytes(needed)} of memory, got {as_bytes(free)} free",
                hint="lower --width or --layers",
                slug="nursery-memory",
            )
        if self.language is not None and self.read.corpus is not None:
            raise ConfigError(
                f"expected a text or a synthetic language, got {self.read.corpus!r} and "
                f"--language={self.language}",
                hint="leave one of them out",
                slug="nursery-data",
            )
        if self.arch == "vit" and (self.language or self.read.corpus):
            raise ConfigError(
                "cannot train vit on texts: it learns the labels of generated images",
                hint="leave out the text and --language, or choose another --arch",
                slug="nursery-data",
            )
