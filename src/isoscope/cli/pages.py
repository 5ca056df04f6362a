"""isoscope figure: one kind of chart of a run, for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.flags import AsJson, Measures, Runs, output, overwrite, site, variant

NAME = "figure"
EXAMPLES = (
    "isoscope figure runs/a --kind spectrum -o spectrum.pdf",
    "isoscope figure runs/a runs/b -m isoscore -o layers.svg --width 174",
)


def command(
    runs: Runs,
    file: Annotated[Path, output("FILE", "The file to write: .pdf, .svg or .png.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="layers, series, spectrum, dimensions, causes, bands, norm, embeddings or "
            "sweep.",
        ),
    ] = "layers",
    names: Measures = None,
    one: Annotated[str | None, site("The site of a spectrum, of bands or a series.")] = None,
    rows: Annotated[str | None, variant()] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Estimates as published, not debiased ones.")
    ] = False,
    width: Annotated[
        float, typer.Option("--width", metavar="MM", help="Width in millimetres.")
    ] = 84.0,
    replace: Annotated[bool, overwrite("file")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a chart at the width of a column, and print its path.

    Charts are those of the report, on white, in type that prints and is embedded.
    """
    from isoscope import api

    made = api.figure(
        runs,
        file,
        kind=kind,
        measures=names or None,
        site=one,
        variant=rows,
        plain=plain,
        width=width,
        overwrite=replace,
    )
    if as_json:
        from json import dumps

        typer.echo(dumps({"figure": str(made), "kind": kind, "bytes": made.stat().st_size}))
        return
    from isoscope.display.escape import plain as harmless

    typer.echo(harmless(str(made)))
