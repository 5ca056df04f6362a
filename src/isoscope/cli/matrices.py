"""isoscope matrices: I(W) of the input and output embeddings of a model."""

from typing import Annotated

import typer

from isoscope.cli.model import Device, Dtype, Model, TrustRemoteCode
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

NAME = "matrices"
EXAMPLES = """\b
Examples:
  isoscope matrices models/minilm
  isoscope matrices models/minilm --as-published --json
"""


def command(
    model: Model,
    against_random: Annotated[
        bool,
        typer.Option(
            "--against-random", help="Also of random rows with the same norms; takes longer."
        ),
    ] = False,
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="One-sided, as in the papers' code."),
    ] = False,
    dtype: Dtype = None,
    device: Device = "cpu",
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
    quiet: Quiet = False,
) -> None:
    """Print I(W) of the embedding matrices of MODEL.

    Of the rows as they are and about their mean, over both signs of every eigenvector. I(W)
    depends on the scale of W: --against-random says what rows of these norms would read.
    Where input and output are one matrix, it is measured once.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs

    found = verbs.matrices(
        model,
        against_random=against_random,
        as_published=as_published,
        dtype=dtype,
        device=device,
        trust_remote_code=trust_remote_code,
        say=lambda text: note(text, quiet=quiet),
    )
    show(found, style, quiet=quiet)
