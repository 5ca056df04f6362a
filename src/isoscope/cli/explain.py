"""isoscope explain: why each site of a run is anisotropic."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.output import (
    AsCsv,
    AsJson,
    AsLatex,
    AsMarkdown,
    chosen,
    show,
)

NAME = "explain"
EXAMPLES = """\b
Examples:
  isoscope explain runs/a
  isoscope explain runs/a -s rows --json
"""


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder written by -o.")],
    sites: Annotated[
        list[str] | None,
        typer.Option(
            "-s", "--site", metavar="SITE", help="A site; repeat it for more than one."
        ),
    ] = None,
    variant: Annotated[
        str,
        typer.Option("--variant", metavar="NAME", help="all, no-special or no-sink."),
    ] = "all",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
) -> None:
    """Print how much of the mean cosine is owed to which cause.

    In this order, always: sink tokens, a few dimensions, token frequency, position, and
    what is left, the mean that all rows share. Where causes overlap, the earlier one has it.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope.verbs.explain import explain

    show(explain(run, sites=sites or None, variant=variant), style)
