"""isoscope survey: every site of a model, over a corpus."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.config import ConfigFile
from isoscope.cli.output import AsCsv, AsJson, AsLatex, AsMarkdown, Quiet, chosen, note, show
from isoscope.cli.progress import progress

STATE = 1_000_000  # bytes of the smallest arrays that sites are kept in

NAME = "survey"
EXAMPLES = """\b
Examples:
  isoscope survey models/minilm -o runs/mine
  isoscope survey models/minilm corpus.txt --tokens 50000 --sites resid,norm
  isoscope survey models/minilm reviews.jsonl --column text --json
"""


def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A folder, a GGUF file, or a name on the hub with @revision.",
        ),
    ],
    corpus: Annotated[
        str | None,
        typer.Argument(
            metavar="[CORPUS]",
            help="Text (a document a line), a folder, jsonl, parquet, csv; token ids (npy); "
            "audio or images; - for stdin. Without one: the bundled text.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="RUN", help="Save a run folder; go on with one begun."
        ),
    ] = None,
    sites: Annotated[
        str | None,
        typer.Option(
            metavar="S,S",
            help="Sites or families: resid, norm, embed, unembed, attn, mlp, q, k, v, pooled; "
            "resid.3, enc.resid  [default: resid, norm, embed, both matrices, pooled]",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--measure", metavar="NAME", help="A measure; repeat it for more than one."
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Also the measures that need the corpus to be run twice."),
    ] = False,
    tokens: Annotated[
        int,
        typer.Option(
            min=2, metavar="N", show_default=True, help="Documents are drawn until so many."
        ),
    ] = 100_000,
    length: Annotated[
        int,
        typer.Option(
            min=2, metavar="N", show_default=True, help="Tokens a document is cut to."
        ),
    ] = 512,
    batch: Annotated[
        int, typer.Option(min=1, metavar="N", show_default=True, help="Documents at once.")
    ] = 32,
    unit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Tokens after which work is kept  [default: 32768]"
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="C", help="The column of texts.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="C", help="The column of transcripts or targets, for decoders."),
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="C", help="The column of document ids.")
    ] = None,
    per: Annotated[
        str | None, typer.Option(metavar="line|file", help="What a document of a text is.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="What files are: text, tokens, audio or image."),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(metavar="D", help="float32, bfloat16 or float16  [default: float32]"),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="D", show_default=True, help="cpu, cuda, cuda:1, mps.")
    ] = "cpu",
    device_map: Annotated[
        str | None, typer.Option(metavar="MAP", help="auto: spread a large model.")
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
    ] = False,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="The same model with random weights.")
    ] = False,
    pooling: Annotated[
        str | None,
        typer.Option(metavar="MODE", help="One vector a text: mean, cls, last or max."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Put before every text.")
    ] = None,
    truncate_dim: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Cut pooled vectors to N numbers.")
    ] = None,
    sinks: Annotated[
        float,
        typer.Option(
            min=1.0,
            metavar="K",
            show_default=True,
            help="A token with K times the median norm of its document is a sink.",
        ),
    ] = 10.0,
    frequencies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Counts of tokens by id (npy) or token (json)  [default: of the corpus]",
        ),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Do the sites in N turns, for less memory."),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Drop and count documents that cannot be read."),
    ] = False,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published", help="Compute as the papers did, where ours differs on purpose."
        ),
    ] = False,
    zeta: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, metavar="Z", show_default=True, help="Shrinkage of isoscore-star."
        ),
    ] = 0.2,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            show_default=True,
            help="Chooses documents, halves, groups and samples.",
        ),
    ] = 0,
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
    """Run MODEL over CORPUS once and measure every site of it."""
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs
    from isoscope.cli.memory import give_back
    from isoscope.study.reads import refuse_spoilt

    give_back(STATE)
    with progress(quiet=quiet, noun="tokens") as tick:
        readings = verbs.survey(
            model,
            corpus,
            output=output,
            sites=[each.strip() for each in sites.split(",") if each.strip()]
            if sites
            else None,
            measures=names or None,
            all=every,
            tokens=tokens,
            length=length,
            batch=batch,
            unit=unit,
            column=column,
            target=target,
            id=identity,
            per=per,
            kind=kind,
            dtype=dtype,
            device=device,
            device_map=device_map,
            trust_remote_code=trust_remote_code,
            untrained=untrained,
            pooling=pooling,
            prompt=prompt,
            truncate_dim=truncate_dim,
            sinks=sinks,
            turns=turns,
            frequencies=frequencies,
            skip_bad=skip_bad,
            as_published=as_published,
            zeta=zeta,
            seed=seed,
            overwrite=overwrite,
            progress=tick,
            say=lambda text: note(text, quiet=quiet),
        )
    show(readings, style, quiet=quiet)
    if output is not None:
        note(f"saved {output}", quiet=quiet)
    refuse_spoilt(readings)
