"""Commands that draw runs: isoscope report, one page of everything, and figure, one chart."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.flags import AsJson, Measures, Quiet, Runs, output, overwrite, site, variant
from isoscope.cli.output import note, show_file

EXAMPLES = {
    "report": (
        "isoscope report runs/a -o page.html",
        "isoscope report runs/a runs/b -o both.html --json",
    ),
    "figure": (
        "isoscope figure runs/a --kind spectrum -o spectrum.pdf",
        "isoscope figure runs/a runs/b -m isoscore -o layers.svg --width 174",
    ),
}


def report(
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

    api.report(runs, page, overwrite=replace)
    size = page.stat().st_size
    show_file(page, {"page": str(page), "bytes": size, "runs": len(runs)}, as_json=as_json)
    note(f"{size / 1e6:.2f} MB; open it in a browser", quiet=quiet or as_json)


def figure(
    runs: Runs,
    file: Annotated[Path, output("FILE", "The file to write: .pdf, .svg or .png.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Chart: layers, series, spectrum, dimensions, causes, bands, norm, "
            "embeddings or sweep.",
        ),
    ] = "layers",
    names: Measures = None,
    one: Annotated[str | None, site("The site of a spectrum, bands or a series.")] = None,
    rows: Annotated[str | None, variant()] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Show plain estimates, not debiased ones.")
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
    facts = {"figure": str(made), "kind": kind, "bytes": made.stat().st_size}
    show_file(made, facts, as_json=as_json)
