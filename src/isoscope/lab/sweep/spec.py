"""The spec of `isoscope sweep`."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Plan, Unit
from isoscope.lab.sweep.results import SweepLine
from isoscope.study.model import ModelSpec
from isoscope.study.option import MOST_THREADS, about
from isoscope.study.run import Runnable

WEIGHTS = (-5.0, -3.0, -1.0, 0.0, 1.0, 3.0, 5.0)


class Before(Unit, frozen=True, tag=True):
    """The model as it came."""


class Cell(Unit, frozen=True, tag=True):
    """One weight and one seed."""

    weight: float
    seed: int


class SweepPlan(Plan, frozen=True, kw_only=True):
    """The model as it came, then every weight and seed."""

    stages: tuple[tuple[Before | Cell, ...], ...]
    weights: tuple[float, ...]
    seeds: tuple[int, ...]

    def size(self, stage: int, unit: int, /) -> int:
        """Return 1 for a cell; the model as it came takes a moment and does not count."""
        return int(isinstance(self.stages[stage][unit], Cell))


class SweepSpec(Runnable[Results[SweepLine]], frozen=True, kw_only=True):
    """Fine-tune a model on a task with a penalty, once for each weight and seed.

    Weight 0 is always among them, and what the others are compared with, seed by seed. With
    `output` a run folder is written; an unfinished one with the same options is resumed.
    Held-out examples are those of `test`, or a share of `data`.
    """

    command: ClassVar[str] = "sweep"
    revision: ClassVar[int] = 1  # penalties listen at sites: the last layer of pre-norm models
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = SweepPlan
    worker_at: ClassVar[str] = "isoscope.lab.sweep.worker:SweepWorker"
    reads_again: ClassVar[str] = "isoscope.lab.sweep.results:read_sweep"
    torch_for: ClassVar[str] = "a sweep"

    load: ModelSpec
    data: Annotated[
        str,
        about(
            "Examples to learn from: tsv, csv, jsonl, parquet, SQuAD json.",
            "DATA",
            argument=True,
            path=True,
        ),
    ]
    test: Annotated[
        str | None, about("Held-out examples, of the same layout.", "FILE", path=True)
    ] = None
    hold_out: Annotated[float, about("Share of DATA held out without --test.", "SHARE")] = 0.2
    task: Annotated[
        str | None,
        about("A known layout: sst2, sst5, cola, mrpc, rte, qnli, qqp, stsb or squad.", "NAME"),
    ] = None
    column: Annotated[str | None, about("The column of texts", "C", default="text")] = None
    pair: Annotated[str | None, about("The column of second texts or questions.", "C")] = None
    label: Annotated[str | None, about("The column of labels.", "C")] = None
    score: Annotated[str | None, about("The column of scores, instead of labels.", "C")] = None
    answer: Annotated[
        str | None, about("The column of answers that stand in the text.", "C")
    ] = None
    metric: Annotated[
        str | None,
        about(
            "accuracy, f1, matthews; pearson, spearman; span-f1, exact",
            "NAME",
            default="by the task",
        ),
    ] = None
    skip_bad: Annotated[bool, about("Drop and count rows that are not examples.")] = False
    penalty: Annotated[str, about("istar, debiased, cosreg or mean-cosine.", "NAME")] = "istar"
    weights: Annotated[
        tuple[float, ...],
        about("Weights of the penalty; 0 is always tried.", "W,W", commas=True),
    ] = WEIGHTS
    seeds: Annotated[int, about("Runs with each weight.", "N", least=1)] = 5
    seed: Annotated[int, about("The first seed.", "N", least=0, most=2**63 - 1)] = 0
    steps: Annotated[int, about("Optimiser steps of a run.", "N", least=1)] = 200
    batch: Annotated[int, about("Examples per step.", "N", least=2)] = 16
    length: Annotated[int, about("Tokens an example is cut to.", "N", least=2)] = 128
    learning_rate: Annotated[
        float,
        about("Learning rate of AdamW; it rises, then falls to 0.", "X", least=1e-12, most=1.0),
    ] = 1e-4
    every: Annotated[int | None, about("Also measure every N steps.", "N", least=1)] = None
    layers: Annotated[
        tuple[str, ...] | None,
        about(
            "all, last, or numbers from 0",
            "L",
            default="the penalty's own",
            commas=True,
            numbers=True,
        ),
    ] = None
    per_layer: Annotated[bool, about("Each layer as a cloud of its own.")] = False
    towards: Annotated[
        str, about("What istar shrinks to: scaled, running, streamed or identity.", "WHAT")
    ] = "scaled"
    zeta: Annotated[float, about("Shrinkage of istar.", "Z", least=0.0, most=1.0)] = 0.2
    rows: Annotated[
        int | None, about("Tokens a penalty looks at; 0 for all.", "N", least=0)
    ] = 2048
    as_published: Annotated[bool, about("cosreg divided by the square of the rows.")] = False
    at: Annotated[
        str | None,
        about(
            "What stands for a text: first, last or mean", "WHERE", default="the model's own"
        ),
    ] = None
    probe: Annotated[
        int, about("Held-out examples whose layers are measured.", "N", least=2)
    ] = 256
    threads: Annotated[
        int | None,
        about(
            "Threads of each unit; they change the last bits",
            "N",
            least=1,
            most=MOST_THREADS,
            default="torch's",
        ),
    ] = None
