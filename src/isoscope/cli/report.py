"""isoscope report: runs as one page that opens from disk and asks nothing of the network."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.flags import AsJson, Quiet, Runs, output, overwrite
from isoscope.cli.output import note

NAME = "report"
EXAMPLES = (
    "isoscope report runs/a -o page.html",
    "isoscope report runs/a runs/b -o both.html --json",
)


def command(
    runs: Runs,
    page: Annotated[Path, output("PAGE", "The HTML file to write.")],
    replace: Annotated[bool, overwrite("page")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about one or several runs and print its path.

    One file of less than 1.5 MB: a verdict, every measure over depth, spectra, outlier
    dimensions, causes, the final norm, and every number in a table.
    """
    from isoscope import api

    made = api.report(runs, page, overwrite=replace)
    size = len(made.text.encode("utf-8", "backslashreplace"))
    if as_json:
        from json import dumps

        typer.echo(dumps({"page": str(page), "bytes": size, "runs": len(runs)}))
        return
    from isoscope.display.escape import plain

    typer.echo(plain(str(page)))
    note(f"{size / 1e6:.2f} MB; open it in a browser", quiet=quiet)
