"""isoscope demo: every layer of a real model, surveyed over the bundled text."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.output import AsJson, Quiet, chosen, note, show
from isoscope.cli.progress import progress

NAME = "demo"
EXAMPLES = """\b
Examples:
  isoscope demo
  isoscope demo -o demo.html --quiet
"""


def command(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="PAGE", help="Also write a report, an HTML file."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the report if there is one.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Survey a real model over the bundled text.

    Without the demo extra, which brings the model, a planted cone is measured.
    """
    style = chosen(json=as_json)
    from isoscope import verbs

    with progress(quiet=quiet, noun="tokens") as tick:
        readings = verbs.demo(
            output=output,
            overwrite=overwrite,
            progress=tick,
            say=lambda text: note(text, quiet=quiet),
        )
    show(readings, style, quiet=quiet)
    if output is not None:
        note(f"report: {output.resolve()}", quiet=False)
