"""isoscope dimensions: the few dimensions that carry the mean cosine of each site of a run."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.output import (
    AsCsv,
    AsJson,
    AsLatex,
    AsMarkdown,
    Quiet,
    chosen,
    show,
)
from isoscope.cli.progress import progress

NAME = "dimensions"
EXAMPLES = """\b
Examples:
  isoscope dimensions runs/a
  isoscope dimensions runs/a -s rows --json
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
    quiet: Quiet = False,
) -> None:
    """Print which dimensions carry the mean cosine of each site.

    With the kurtosis of the first (0 for a Gaussian), and r squared: how much of the cosines
    of whole vectors is left when the top 1, 3 and 5 dimensions are taken out.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs

    with progress(quiet=quiet, noun="sites") as tick:
        found = verbs.dimensions(run, sites=sites or None, variant=variant, progress=tick)
    show(found, style, quiet=quiet)
