"""isoscope probe: how well one number of a model's state tells two labels apart."""

from typing import Annotated

import typer

from isoscope.cli.config import ConfigFile
from isoscope.cli.model import (
    Batch,
    Device,
    Dtype,
    Length,
    Model,
    TextColumn,
    TrustRemoteCode,
)
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

NAME = "probe"
EXAMPLES = """\b
Examples:
  isoscope probe models/minilm reviews.jsonl --label stars
  isoscope probe models/minilm reviews.jsonl --label stars -s resid.1 --json
  isoscope probe models/minilm corpus.txt --label labels.txt --at mean
"""


def command(
    model: Model,
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="jsonl, parquet or csv with a column of labels; anything else that survey "
            "takes, with labels apart.",
        ),
    ],
    label: Annotated[
        str,
        typer.Option(
            metavar="C", help="The column of labels, or a .txt file with a label a line."
        ),
    ],
    sites: Annotated[
        list[str] | None,
        typer.Option(
            "-s", "--site", metavar="SITE", help="A site; may be repeated  [default: norm.out]"
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="The token that stands for a document: first or last, or mean of all  "
            "[default: first of encoders, last of decoders]",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="This label against all others."),
    ] = None,
    test: Annotated[
        float,
        typer.Option(
            metavar="SHARE", show_default=True, help="Documents kept to try the rule on."
        ),
    ] = 0.5,
    column: TextColumn = None,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="C", help="The column of document ids.")
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Drop and count documents that cannot be read."),
    ] = False,
    length: Length = 512,
    batch: Batch = 16,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", show_default=True, help="Chooses the documents to try it on."
        ),
    ] = 0,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="The dimension of largest variance, and the threshold on a fixed grid.",
        ),
    ] = False,
    dtype: Dtype = None,
    device: Device = "cpu",
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Print how well one dimension tells two labels of CORPUS apart.

    Every dimension, threshold and direction is tried on one half of the documents; the best
    is tried on the other. Beside its accuracy stands what giving the commoner label always
    would reach.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs

    with progress(quiet=quiet, noun="documents") as tick:
        found = verbs.probe(
            model,
            corpus,
            label,
            sites=sites or None,
            at=at,
            positive=positive,
            test=test,
            column=column,
            id=identity,
            skip_bad=skip_bad,
            length=length,
            batch=batch,
            seed=seed,
            as_published=as_published,
            dtype=dtype,
            device=device,
            trust_remote_code=trust_remote_code,
            progress=tick,
            say=lambda text: note(text, quiet=quiet),
        )
    show(found, style, quiet=quiet)
