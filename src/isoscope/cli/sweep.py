"""isoscope sweep: fine-tune with a penalty at several weights, and compare with none."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.config import ConfigFile
from isoscope.cli.model import Device, Model, TrustRemoteCode
from isoscope.cli.output import (
    AsCsv,
    AsJson,
    AsLatex,
    AsMarkdown,
    Quiet,
    chosen,
    note,
    show,
)
from isoscope.cli.progress import progress

NAME = "sweep"
EXAMPLES = """\b
Examples:
  isoscope sweep models/minilm sst2.tsv --task sst2 --steps 9 -o runs/sst2
  isoscope sweep models/minilm reviews.jsonl --label stars --seeds 1 --steps 9
"""


def command(
    model: Model,
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Examples to learn from: tsv, csv, jsonl, parquet, SQuAD json."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="RUN", help="Save a run folder; go on with one begun."
        ),
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Held-out examples, of the same layout.")
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option(
            metavar="SHARE", show_default=True, help="Share of DATA held out without --test."
        ),
    ] = 0.2,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A known layout: sst2, sst5, cola, mrpc, rte, qnli, qqp, stsb or squad.",
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="C", help="The column of texts  [default: text]")
    ] = None,
    pair: Annotated[
        str | None, typer.Option(metavar="C", help="The column of second texts or questions.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="C", help="The column of labels.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(metavar="C", help="The column of scores, instead of labels.")
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(metavar="C", help="The column of answers that stand in the text."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="accuracy, f1, matthews; pearson, spearman; span-f1, exact  "
            "[default: by the task]",
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Drop and count rows that are no example."),
    ] = False,
    penalty: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=True, help="istar, debiased, cosreg or mean-cosine."
        ),
    ] = "istar",
    weights: Annotated[
        str,
        typer.Option(
            metavar="W,W", show_default=True, help="Weights of the penalty; 0 is always tried."
        ),
    ] = "-5,-3,-1,0,1,3,5",
    seeds: Annotated[
        int,
        typer.Option(min=1, metavar="N", show_default=True, help="Runs with each weight."),
    ] = 5,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", show_default=True, help="The first seed.")
    ] = 0,
    steps: Annotated[
        int,
        typer.Option(min=1, metavar="N", show_default=True, help="Optimiser steps of a run."),
    ] = 200,
    batch: Annotated[
        int, typer.Option(min=2, metavar="N", show_default=True, help="Examples of a step.")
    ] = 16,
    length: Annotated[
        int,
        typer.Option(
            min=2, metavar="N", show_default=True, help="Tokens an example is cut to."
        ),
    ] = 128,
    learning_rate: Annotated[
        float,
        typer.Option(
            metavar="X", show_default=True, help="Of AdamW; it rises, then falls to 0."
        ),
    ] = 1e-4,
    every: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Also measure after every N steps."),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="L", help="all, last, or numbers from 0  [default: the penalty's own]"
        ),
    ] = None,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Each layer as a cloud of its own.")
    ] = False,
    towards: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            show_default=True,
            help="What istar shrinks to: scaled, running, streamed or identity.",
        ),
    ] = "scaled",
    zeta: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, metavar="Z", show_default=True, help="Shrinkage of istar."
        ),
    ] = 0.2,
    rows: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", show_default=True, help="Tokens a penalty looks at; 0 for all."
        ),
    ] = 2048,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="cosreg divided by the square of the rows.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="What stands for a text: first, last or mean  [default: the model's own]",
        ),
    ] = None,
    probe: Annotated[
        int,
        typer.Option(
            min=2,
            metavar="N",
            show_default=True,
            help="Held-out examples whose layers are measured.",
        ),
    ] = 256,
    threads: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Threads to compute with  [default: torch's]"),
    ] = None,
    device: Device = "cpu",
    trust_remote_code: TrustRemoteCode = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run folder if there is one.")
    ] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Fine-tune with a penalty at several weights, and compare.

    Every weight and seed is a run of its own, kept as it is finished: the same command goes
    on where it was stopped. Differences are to weight 0 with the same seed, which has the
    same head, dropout and order of examples. `isoscope report RUN` draws what was found.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs
    from isoscope.verbs.sweep import checked_layers

    with progress(quiet=quiet, noun="runs") as tick:
        found = verbs.sweep(
            model,
            data,
            output=output,
            test=test,
            hold_out=hold_out,
            task=task,
            column=column,
            pair=pair,
            label=label,
            score=score,
            answer=answer,
            metric=metric,
            skip_bad=skip_bad,
            penalty=penalty,
            weights=[each for each in weights.split(",") if each.strip()],  # pyright: ignore
            seeds=seeds,
            seed=seed,
            steps=steps,
            batch=batch,
            length=length,
            learning_rate=learning_rate,
            every=every,
            layers=checked_layers(layers),
            per_layer=per_layer,
            towards=towards,
            zeta=zeta,
            rows=rows,
            as_published=as_published,
            at=at,
            probe=probe,
            threads=threads,
            device=device,
            trust_remote_code=trust_remote_code,
            overwrite=overwrite,
            progress=tick,
            say=lambda text: note(text, quiet=quiet),
        )
    show(found, style, quiet=quiet)
    if output is not None:
        note(f"saved {output}", quiet=quiet)
