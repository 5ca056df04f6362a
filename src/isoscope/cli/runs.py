"""Commands on run folders: isoscope merge, read, report, figure, compare and check."""

import os
from pathlib import Path
from typing import Annotated

import typer

import isoscope as iso
from isoscope.cli.config import ConfigFile
from isoscope.cli.flags import (
    ROWS,
    AsJson,
    Measures,
    Quiet,
    Run,
    Runs,
    Sites,
    Variant,
    formats,
    measure,
    output,
    overwrite,
    site,
)
from isoscope.cli.output import note, show, show_file
from isoscope.errors import StoreError

EXAMPLES = {
    "merge": (
        "isoscope merge runs/a runs/b -o runs/whole",
        "isoscope merge runs/a runs/b -o runs/whole --overwrite --json",
    ),
    "read": (
        "isoscope read runs/a",
        "isoscope read runs/a -m mean-cosine -m isoscore --latex",
        "isoscope read runs/a -s rows --json | head -n 1",
    ),
    "report": (
        "isoscope report runs/a -o page.html",
        "isoscope report runs/a runs/b -o both.html --json",
    ),
    "figure": (
        "isoscope figure runs/a --kind spectrum -o spectrum.pdf",
        "isoscope figure runs/a runs/b -m isoscore -o layers.svg --width 174",
    ),
    "compare": (
        "isoscope compare runs/a runs/b",
        "isoscope compare runs/a runs/b -m mean-cosine -m isoscore --markdown",
        "isoscope compare vectors.npy other.npy",
    ),
    "check": (
        "isoscope check runs/a --fail-if 'mean-cosine > 0.9' --junit check.xml",
        "isoscope check runs/b --baseline runs/a --fail-if 'mean-cosine > 2x' --json",
    ),
}


def merge(
    runs: Runs,
    whole: Annotated[Path, output("RUN", "The new run folder.")],
    replace: Annotated[bool, overwrite("run folder")] = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Merge runs of separate parts into one run.

    The numbers are those of all rows together. Runs can be merged when they were measured
    with the same settings and seed, on rows of one width and type, and no source occurs in
    two of them.
    """
    merged = iso.merge(runs, whole, overwrite=replace)
    show(merged, "json" if as_json else "", quiet=quiet)
    note(f"saved {whole}", quiet=quiet)


@formats
def read(run: Run, names: Measures = None, sites: Sites = None, style: str = "") -> None:
    """Print the readings of a run folder."""
    show(iso.read(run, measures=names or None, sites=sites or None), style)


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
    iso.report(runs, page, overwrite=replace)
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
    rows: Annotated[str | None, ROWS] = None,
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
    made = iso.figure(
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


@formats
def compare(
    first: Annotated[
        Path,
        typer.Argument(metavar="A", help="A run folder written by -o, or a file of vectors."),
    ],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="The run or file to compare with A.")
    ],
    names: Annotated[
        list[str] | None,
        measure("A measure; repeat it for more than one. Without it, the main ones."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Compare all measures that both runs have.")
    ] = False,
    sites: Annotated[
        list[str] | None, site("A site of A; repeat it for more than one.")
    ] = None,
    variant: Variant = "all",
    match: Annotated[
        str,
        typer.Option(
            "--match", metavar="HOW", help="Match sites by name, or layers by relative depth."
        ),
    ] = "name",
    style: str = "",
) -> None:
    """Print two runs side by side, and what changed.

    The difference is b - a, with a 95 % interval. Where both read the same documents, it is
    paired by document group and far sharper. "changed" means significant at 5 % after
    Holm's correction over the rows.
    """
    changes = iso.compare(
        first,
        second,
        measures=names or None,
        sites=sites or None,
        variant=variant,
        match=match,
        all=all_,
    )
    show(changes, style)


def check(
    run: Run,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="RULE",
            help="What must not be true: MEASURE[@SITE][/VARIANT] > NUMBER; repeat it for "
            "more than one. 0.9x means nine tenths of the baseline.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="RUN", help="The run that x in rules refers to."),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write JUnit XML to a file."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", help="Write a summary in Markdown to a file."
        ),
    ] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Check a run against rules, as a gate for CI.

    Exit 0: all rules hold. Exit 1: one is breached. Exit 2: one could not be checked. A rule
    is breached where the whole 95 % interval lies beyond the limit; where only the value
    does, that is a warning. A rule without a site applies to every site.
    """
    from isoscope.comparison.check import refuse
    from isoscope.comparison.outcomes import as_junit

    outcomes = iso.check(run, rules or [], baseline=baseline)
    show(outcomes, "json" if as_json else "")
    if junit is not None:
        _write(junit, as_junit(outcomes))
    if markdown is not None:
        _write(markdown, outcomes.to_markdown())
    note(outcomes.summary, quiet=quiet)
    refuse(outcomes)


def _write(path: Path, text: str) -> None:
    """Write a file; the summary of a GitHub step may have other content, which stays."""
    mode = "a" if str(path) == os.environ.get("GITHUB_STEP_SUMMARY") else "w"
    try:
        with path.open(mode, encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise StoreError(
            f"cannot write {str(path)!r}: {error.strerror}",
            hint="name a file in a folder that exists and can be written to",
            slug="check-file",
        ) from error
