"""isoscope compare: two runs side by side, and what changed for more than noise."""

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

NAME = "compare"
EXAMPLES = """\b
Examples:
  isoscope compare runs/a runs/b
  isoscope compare runs/a runs/b -m mean-cosine -m isoscore --markdown
  isoscope compare vectors.npy other.npy
"""


def command(
    first: Annotated[
        Path,
        typer.Argument(metavar="A", help="A run folder written by -o, or a file of vectors."),
    ],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    names: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--measure",
            metavar="NAME",
            help="A measure; repeat it for more than one. Without it, the usual ones.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="All measures that both runs have.")
    ] = False,
    sites: Annotated[
        list[str] | None,
        typer.Option("-s", "--site", metavar="SITE", help="A site of A; repeat it likewise."),
    ] = None,
    variant: Annotated[
        str,
        typer.Option("--variant", metavar="NAME", help="all, no-special or no-sink."),
    ] = "all",
    match: Annotated[
        str,
        typer.Option(
            "--match", metavar="HOW", help="Match sites by name, or layers by relative depth."
        ),
    ] = "name",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
) -> None:
    """Print two runs side by side, and what changed.

    The difference is b - a, with a 95 % interval. Where both have read the same documents,
    it is paired by document group and far sharper. What is called changed is so at 5 %
    after Holm's correction over the rows.
    """
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs

    changes = verbs.compare(
        first,
        second,
        measures=names or None,
        sites=sites or None,
        variant=variant,
        match=match,
        all=all_,
    )
    show(changes, style)
