"""isoscope report: runs as one page that opens from disk and asks nothing of the network."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.output import AsJson, Quiet, note

NAME = "report"
EXAMPLES = """\b
Examples:
  isoscope report runs/a -o page.html
  isoscope report runs/a runs/b -o both.html --json
"""


def command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders written by -o.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="PAGE", help="The HTML file to write.")
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the page if there is one.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about one or several runs and print its path.

    One file of less than 1.5 MB: a verdict, every measure over depth, spectra, outlier
    dimensions, causes, the final norm, and every number in a table.
    """
    from isoscope import verbs

    made = verbs.report(runs, output, overwrite=overwrite)
    size = len(made.text.encode("utf-8", "backslashreplace"))
    if as_json:
        from json import dumps

        typer.echo(dumps({"page": str(output), "bytes": size, "runs": len(runs)}))
        return
    from isoscope.report.escape import plain

    typer.echo(plain(str(output)))
    note(f"{size / 1e6:.2f} MB; open it in a browser", quiet=quiet)
