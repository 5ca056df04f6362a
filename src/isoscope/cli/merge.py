"""isoscope merge: runs of parts added up to the run of the whole."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.config import ConfigFile
from isoscope.cli.output import AsJson, Quiet, chosen, note, show

NAME = "merge"
EXAMPLES = """\b
Examples:
  isoscope merge runs/a runs/b -o runs/whole
  isoscope merge runs/a runs/b -o runs/whole --overwrite --json
"""


def command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders written by -o.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="RUN", help="The new run folder.")
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run folder if there is one.")
    ] = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Add up runs that were measured apart.

    The numbers are those of all their rows together. Runs add up when they were measured
    with the same settings and seed, on rows of one width and type, and no source is in
    two of them.
    """
    style = chosen(json=as_json)
    from isoscope import verbs

    show(verbs.merge(runs, output, overwrite=overwrite), style, quiet=quiet)
    note(f"saved {output}", quiet=quiet)
