"""isoscope zero: what the output of a model loses with one dimension of its norms."""

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

NAME = "zero"
EXAMPLES = """\b
Examples:
  isoscope zero models/gpt2
  isoscope zero models/gpt2 corpus.txt --dimension 3 --dimension 11 --json
  isoscope zero models/gpt2 corpus.txt --norm 2 --documents 12
"""


def command(
    model: Model,
    corpus: Annotated[
        str | None,
        typer.Argument(
            metavar="[CORPUS]",
            help="Text (a document a line), a folder, jsonl, parquet, csv; - for stdin. "
            "Without one: the bundled text.",
        ),
    ] = None,
    dimensions: Annotated[
        list[int] | None,
        typer.Option(
            "--dimension",
            metavar="N",
            help="A dimension, from 0; repeat it for more  [default: by share of the cosine]",
        ),
    ] = None,
    norms: Annotated[
        list[str] | None,
        typer.Option(
            "--norm",
            metavar="NORM",
            help="final; a number: all norms of so many last blocks; or a name, which may be "
            "repeated  [default: final]",
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", show_default=True, help="So many with the largest shares."
        ),
    ] = 3,
    random: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", show_default=True, help="So many random ones to compare with."
        ),
    ] = 3,
    documents: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", show_default=True, help="Documents drawn from the corpus."
        ),
    ] = 16,
    length: Length = 128,
    batch: Batch = 4,
    column: TextColumn = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            show_default=True,
            help="Chooses documents and random dimensions.",
        ),
    ] = 0,
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
    """Print how far the output of MODEL moves without one dimension.

    The Kullback-Leibler divergence, in nats a token, of the distribution over tokens when
    gain and bias of one norm dimension are zero, beside random dimensions. Done by hooks:
    the weights are not touched.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs

    with progress(quiet=quiet, noun="passes") as tick:
        found = verbs.zero(
            model,
            corpus,
            dimensions=dimensions or None,
            norms=_norms(norms or ["final"]),
            top=top,
            random=random,
            documents=documents,
            length=length,
            batch=batch,
            column=column,
            seed=seed,
            dtype=dtype,
            device=device,
            trust_remote_code=trust_remote_code,
            progress=tick,
            say=lambda text: note(text, quiet=quiet),
        )
    show(found, style, quiet=quiet)


def _norms(given: list[str]) -> str | int | list[str]:
    """Return norms as they were meant: final, a number of blocks, or names."""
    if len(given) > 1:
        return given
    return int(given[0]) if given[0].isascii() and given[0].isdigit() else given[0]
