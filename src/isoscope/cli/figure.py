"""isoscope figure: one kind of chart of a run, for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.output import AsJson

NAME = "figure"
EXAMPLES = """\b
Examples:
  isoscope figure runs/a --kind spectrum -o spectrum.pdf
  isoscope figure runs/a runs/b -m isoscore -o layers.svg --width 174
"""


def command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders written by -o.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The file to write: .pdf, .svg or .png."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="layers, series, spectrum, dimensions, causes, bands, norm, embeddings or "
            "sweep.",
        ),
    ] = "layers",
    names: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--measure", metavar="NAME", help="A measure; repeat it for more than one."
        ),
    ] = None,
    site: Annotated[
        str | None,
        typer.Option(
            "-s", "--site", metavar="SITE", help="The site of a spectrum, of bands or a series."
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option("--variant", metavar="NAME", help="all, no-special or no-sink."),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Estimates as published, not debiased ones.")
    ] = False,
    width: Annotated[
        float, typer.Option("--width", metavar="MM", help="Width in millimetres.")
    ] = 84.0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if there is one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a chart at the width of a column, and print its path.

    Charts are those of the report, on white, in type that prints and is embedded.
    """
    from isoscope import verbs

    made = verbs.figure(
        runs,
        output,
        kind=kind,
        measures=names or None,
        site=site,
        variant=variant,
        plain=plain,
        width=width,
        overwrite=overwrite,
    )
    if as_json:
        from json import dumps

        typer.echo(dumps({"figure": str(made), "kind": kind, "bytes": made.stat().st_size}))
        return
    from isoscope.report.escape import plain as harmless

    typer.echo(harmless(str(made)))
