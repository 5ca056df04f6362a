"""isoscope read: the readings of a run folder, as a table in any format."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.output import AsCsv, AsJson, AsLatex, AsMarkdown, chosen, show

NAME = "read"
EXAMPLES = """\b
Examples:
  isoscope read runs/a
  isoscope read runs/a -m mean-cosine -m isoscore --latex
  isoscope read runs/a -s rows --json | head -n 1
"""


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder written by -o.")],
    names: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--measure", metavar="NAME", help="A measure; repeat it for more than one."
        ),
    ] = None,
    sites: Annotated[
        list[str] | None,
        typer.Option("-s", "--site", metavar="SITE", help="A site; repeat it likewise."),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
) -> None:
    """Print the readings of a run folder."""
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs

    show(verbs.read(run, measures=names or None, sites=sites or None), style)
