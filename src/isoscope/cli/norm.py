"""isoscope norm: gain and bias of a model's norms, and what the final one does."""

from pathlib import Path
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

NAME = "norm"
EXAMPLES = """\b
Examples:
  isoscope norm models/minilm
  isoscope norm models/minilm --run runs/minilm
  isoscope norm models/minilm --sigmas 2.5 --json
"""


def command(
    model: Model,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A survey of this model: what it reads before and after the norm.",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--measure", metavar="NAME", help="A measure of the run; repeat it likewise."
        ),
    ] = None,
    variant: Annotated[
        str,
        typer.Option("--variant", metavar="NAME", help="all, no-special or no-sink."),
    ] = "all",
    sigmas: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="K", show_default=True, help="From where a parameter stands out."
        ),
    ] = 3.0,
    dtype: Dtype = None,
    device: Device = "cpu",
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
    quiet: Quiet = False,
) -> None:
    """Print what the norms of MODEL hold and what the final one does.

    The norms of gain and bias, r = |bias| / |gain|, and r^2 / (1 + r^2): the mean cosine of
    the output if nothing but the bias were common to it. Then dimensions whose gain or bias
    stands out. With a run, the readings before, between and after the final norm.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs

    found = verbs.norm(
        model,
        run=run,
        measures=names or None,
        variant=variant,
        sigmas=sigmas,
        dtype=dtype,
        device=device,
        trust_remote_code=trust_remote_code,
        say=lambda text: note(text, quiet=quiet),
    )
    show(found, style, quiet=quiet)
