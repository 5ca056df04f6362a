"""Measure, explain and control the anisotropy of Transformer representations."""

# Written by `make derive`, from the specs: edit those.

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

from isoscope.api import check, compare, figure, load, merge, read, report
from isoscope.causes.cause import Cause
from isoscope.display.results import Results
from isoscope.lab.dimensions.results import SiteDimensions
from isoscope.lab.drift.results import DriftRecord
from isoscope.lab.explain.heads import HeadCosines
from isoscope.lab.matrices.results import MatrixIsotropy
from isoscope.lab.norm.results import FinalNorm, NormSteps, RoleOutliers
from isoscope.lab.nursery.ablation import EffectLine
from isoscope.lab.nursery.results import TrainedStep
from isoscope.lab.probe.results import Probe
from isoscope.lab.sweep.results import SweepLine
from isoscope.lab.trajectory.results import Course
from isoscope.lab.zero.results import ZeroedDimension
from isoscope.study.keywords import Progress, Say
from isoscope.types import Reading

__all__ = [
    "attention",
    "check",
    "compare",
    "dimensions",
    "drift",
    "explain",
    "figure",
    "load",
    "matrices",
    "measure",
    "merge",
    "norm",
    "nursery_ablate",
    "nursery_train",
    "probe",
    "read",
    "report",
    "survey",
    "survey_module",
    "sweep",
    "trajectory",
    "zero",
]

def attention(
    model: Any,
    corpus: Any = None,
    *,
    revisions: str | Sequence[str] | None = None,
    free: bool = False,
    skip_broken: bool = False,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    column: str | None = None,
    target: str | None = None,
    id: str | None = None,
    per: str | None = None,
    kind: str | None = None,
    skip_bad: bool = False,
    queries: str = "16",
    tokens: int | None = 100000,
    length: int = 512,
    batch: int = 32,
    unit: int | None = None,
    device_map: str | None = None,
    untrained: bool = False,
    prompt: str | None = None,
    no_bos: bool = False,
    sinks: float = 10.0,
    seed: int = 0,
    threads: int | None = None,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[Reading]:
    """Read every attention head of a model: its queries, its keys and its scores."""

def dimensions(
    run: Any,
    *,
    sites: str | Sequence[str] | None = None,
    variant: Literal["all", "no-special", "no-sink"] = "all",
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[SiteDimensions]:
    """Find which dimensions carry the mean cosine of each site, and what is left without
    them.
    """

def drift(
    *,
    arch: Literal["bert", "gpt2", "gpt_neox", "llama", "vit", "wav2vec2"] | Sequence[Literal["bert", "gpt2", "gpt_neox", "llama", "vit", "wav2vec2"]] = ("bert", "gpt2"),
    at: Literal["input", "norm-bias", "query-bias", "key-bias", "query-key-bias"] | Sequence[Literal["input", "norm-bias", "query-bias", "key-bias", "query-key-bias"]] = ("input",),
    norms: float | Sequence[float] = (0.0, 10.0, 27.7, 100.0, 300.0, 1000.0),
    initialisations: int = 20,
    tokens: int = 512,
    width: int = 768,
    heads: int = 12,
    inner: int | None = None,
    blocks: int = 1,
    std: float = 0.02,
    seed: int = 0,
    threads: int = 1,
    survey: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[DriftRecord]:
    """Feed drifting input to untrained blocks, and compare with closed forms."""

def explain(
    run: Any,
    *,
    sites: str | Sequence[str] | None = None,
    variant: Literal["all", "no-special", "no-sink"] = "all",
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[Cause | HeadCosines]:
    """Explain what the mean cosine of each site is owed to."""

def matrices(
    model: Any,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    against_random: bool = False,
    as_published: bool = False,
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[MatrixIsotropy]:
    """Measure how isotropic the rows of a model's matrices are: I(W), raw and centred."""

def measure(
    vectors: Any,
    *,
    measures: str | Sequence[str] | None = None,
    all: bool = False,
    as_published: bool = False,
    zeta: float = 0.2,
    column: str | None = None,
    document: Any = None,
    id: Any = None,
    text: Any = None,
    name: str | None = None,
    by_order: bool = False,
    truncate_dim: int | None = None,
    skip_bad: bool = False,
    seed: int = 0,
    threads: int = 2,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[Reading]:
    """Measure a collection of vectors: an array, a tensor, a column of a frame, or a path."""

def norm(
    model: Any,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    run: str | PathLike[str] | None = None,
    measures: str | Sequence[str] | None = None,
    variant: Literal["all", "no-special", "no-sink"] = "all",
    sigmas: float = 3.0,
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[FinalNorm | RoleOutliers | NormSteps]:
    """Describe what the norms of a model hold, and what the final one does to the mean
    cosine.
    """

def nursery_ablate(
    *,
    factors: str | Sequence[str] = ("tie", "norm", "attention", "frequency"),
    seeds: int = 3,
    layers: int = 4,
    width: int = 64,
    heads: int | None = None,
    vocabulary: int = 512,
    steps: int = 200,
    batch: int = 32,
    length: int = 64,
    learning_rate: float = 0.003,
    checkpoints: int = 8,
    seed: int = 0,
    threads: int | None = None,
    tokens: int = 4096,
    permutations: int = 200,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[EffectLine]:
    """Train small models that differ in one ingredient each, and estimate what each does."""

def nursery_train(
    corpus: Any = None,
    *,
    column: str | None = None,
    language: Literal["zipf", "uniform"] | None = None,
    arch: Literal["nursery", "gpt_neox", "gpt2", "llama", "bert", "vit"] = "nursery",
    tied: bool = False,
    norm_place: Literal["pre", "post"] = "pre",
    norm_kind: Literal["layer", "rms"] = "layer",
    no_final_bias: bool = False,
    mixer: Literal["attention", "convolution"] = "attention",
    objective: Literal["causal", "masked"] | None = None,
    residual: Literal["parallel", "sequential"] | None = None,
    layers: int = 4,
    width: int = 128,
    heads: int | None = None,
    vocabulary: int = 2048,
    tokenizer: Literal["bpe", "bytes"] = "bpe",
    hold_out: float = 0.1,
    steps: int = 600,
    batch: int = 16,
    length: int = 128,
    learning_rate: float = 0.002,
    checkpoints: int = 12,
    seed: int = 0,
    threads: int | None = None,
    penalty: str | None = None,
    weight: float = 1.0,
    watch: int | None = None,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[TrainedStep]:
    """Train a small model from its first step, and save checkpoints at log-spaced steps."""

def probe(
    model: Any,
    corpus: Any,
    label: Any,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    column: str | None = None,
    id: str | None = None,
    skip_bad: bool = False,
    sites: str | Sequence[str] | None = None,
    at: str | None = None,
    positive: str | None = None,
    test: float = 0.5,
    length: int = 512,
    batch: int = 16,
    seed: int = 0,
    as_published: bool = False,
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[Probe]:
    """Measure how well one dimension of a document's state distinguishes two labels."""

def survey(
    model: Any,
    corpus: Any = None,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    column: str | None = None,
    target: str | None = None,
    id: str | None = None,
    per: str | None = None,
    kind: str | None = None,
    skip_bad: bool = False,
    sites: str | Sequence[str] | None = None,
    measures: str | Sequence[str] | None = None,
    all: bool = False,
    as_published: bool = False,
    zeta: float = 0.2,
    tokens: int | None = 100000,
    length: int = 512,
    batch: int = 32,
    unit: int | None = None,
    device_map: str | None = None,
    untrained: bool = False,
    pooling: Literal["mean", "cls", "last", "max"] | None = None,
    prompt: str | None = None,
    no_bos: bool = False,
    truncate_dim: int | None = None,
    sinks: float = 10.0,
    frequencies: str | PathLike[str] | None = None,
    turns: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[Reading]:
    """Run a model over a corpus and read every site; activations are never kept."""

def survey_module(
    module: Any,
    batches: Any,
    taps: Any,
    *,
    measures: str | Sequence[str] | None = None,
    all: bool = False,
    as_published: bool = False,
    zeta: float = 0.2,
    name: str = "module",
    sinks: float = 10.0,
    seed: int = 0,
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[Reading]:
    """Measure any module at the modules named in `taps`, over batches of your own."""

def sweep(
    model: Any,
    data: str | PathLike[str],
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    test: str | PathLike[str] | None = None,
    hold_out: float = 0.2,
    task: str | None = None,
    column: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    score: str | None = None,
    answer: str | None = None,
    metric: str | None = None,
    skip_bad: bool = False,
    penalty: str = "istar",
    weights: float | Sequence[float] = (-5.0, -3.0, -1.0, 0.0, 1.0, 3.0, 5.0),
    seeds: int = 5,
    seed: int = 0,
    steps: int = 200,
    batch: int = 16,
    length: int = 128,
    learning_rate: float = 0.0001,
    every: int | None = None,
    layers: str | int | Sequence[str | int] | None = None,
    per_layer: bool = False,
    towards: str = "scaled",
    zeta: float = 0.2,
    rows: int | None = 2048,
    as_published: bool = False,
    at: str | None = None,
    probe: int = 256,
    threads: int | None = None,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[SweepLine]:
    """Fine-tune a model on a task with a penalty, once for each weight and seed."""

def trajectory(
    series: str | PathLike[str] | Sequence[str | PathLike[str]],
    corpus: Any = None,
    *,
    revisions: str | Sequence[str] | None = None,
    free: bool = False,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    column: str | None = None,
    target: str | None = None,
    id: str | None = None,
    per: str | None = None,
    kind: str | None = None,
    skip_bad: bool = False,
    sites: str | Sequence[str] | None = None,
    measures: str | Sequence[str] | None = None,
    all: bool = False,
    as_published: bool = False,
    zeta: float = 0.2,
    tokens: int | None = 100000,
    length: int = 512,
    batch: int = 32,
    unit: int | None = None,
    device_map: str | None = None,
    untrained: bool = False,
    pooling: Literal["mean", "cls", "last", "max"] | None = None,
    prompt: str | None = None,
    no_bos: bool = False,
    truncate_dim: int | None = None,
    sinks: float = 10.0,
    frequencies: str | PathLike[str] | None = None,
    turns: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    metrics: str | PathLike[str] | None = None,
    skip_broken: bool = False,
    no_theories: bool = False,
    engine: str = "here",
    workers: int = 1,
    output: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[Course]:
    """Survey every checkpoint of a series over the same documents, and say what changes
    when.
    """

def zero(
    model: Any,
    corpus: Any = None,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    column: str | None = None,
    dimensions: int | Sequence[int] | None = None,
    norms: str | int | Sequence[str | int] = ("final",),
    top: int = 3,
    random: int = 3,
    documents: int = 16,
    length: int = 128,
    batch: int = 4,
    seed: int = 0,
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results[ZeroedDimension]:
    """Measure how far the output distribution moves when one dimension of norms is zeroed."""
