"""Commands on run folders: isoscope merge, read, report, figure, compare and check."""

import os
from pathlib import Path

import click

import isoscope as iso
from isoscope.cli import flags
from isoscope.cli.config import config_file
from isoscope.cli.flags import PATH, as_json, formats, measures, output, overwrite, quiet, sites
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
        "isoscope read runs/a --wide -m mean-cosine -m isoscore --latex",
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


@flags.runs
@output("RUN", "The new run folder.")
@overwrite("run folder")
@as_json
@config_file
@quiet
def merge(runs: list[Path], target: Path, overwrite: bool, style: str, quiet: bool) -> None:
    """Merge runs of separate parts into one run.

    The numbers are those of all rows together. Runs can be merged when they were measured
    with the same settings and seed, on rows of one width and type, and no source occurs in
    two of them.
    """
    show(iso.merge(runs, target, overwrite=overwrite), style, quiet=quiet)
    note(f"saved {target}", quiet=quiet)


@flags.run
@measures()
@sites()
@click.option("--variant", metavar="NAME", help=flags.ROWS)
@click.option("--no-bands", is_flag=True, help="Skip readings by token frequency and position.")
@click.option("--wide", is_flag=True, help="One line per site and one column per measure.")
@formats
def read(
    run: Path,
    names: tuple[str, ...],
    sites: tuple[str, ...],
    variant: str | None,
    no_bands: bool,
    wide: bool,
    style: str,
) -> None:
    """Print the readings of a run folder.

    With --wide in any format: a table of layers for a paper with --latex or --markdown, all
    measures with their intervals with --csv.
    """
    found = iso.read(
        run,
        measures=names or None,
        sites=sites or None,
        variant=variant,
        bands=not no_bands,
    )
    if wide:
        from isoscope.display import side_by_side

        show(side_by_side(found), style)
    else:
        show(found, style)


@flags.runs
@output("PAGE", "The HTML file to write.")
@overwrite("page")
@as_json
@quiet
def report(runs: list[Path], target: Path, overwrite: bool, style: str, quiet: bool) -> None:
    """Write a page about one or several runs and print its path.

    One file of less than 1.5 MB: a verdict, every measure over depth, spectra, outlier
    dimensions, causes, the final norm, and every number in a table.
    """
    iso.report(runs, target, overwrite=overwrite)
    size = target.stat().st_size
    facts: dict[str, str | int] = {"page": str(target), "bytes": size, "runs": len(runs)}
    show_file(target, facts, as_json=bool(style))
    note(f"{size / 1e6:.2f} MB; open it in a browser", quiet=quiet or bool(style))


@flags.runs
@output("FILE", "The file to write: .pdf, .svg or .png.")
@click.option(
    "--kind",
    metavar="KIND",
    default="layers",
    help="Chart: layers, series, spectrum, dimensions, causes, bands, norm, embeddings, sweep, "
    "trajectory, curvature, drift, ablation or heads.",
)
@measures()
@click.option("-s", "--site", metavar="SITE", help="The site of a spectrum, bands or a series.")
@click.option("--variant", metavar="NAME", help=flags.ROWS)
@click.option(
    "--plain", is_flag=True, help="Without -m: draw plain estimates, not debiased ones."
)
@click.option("--width", metavar="MM", type=float, default=84.0, help="Width in millimetres.")
@overwrite("file")
@as_json
def figure(
    runs: list[Path],
    target: Path,
    kind: str,
    names: tuple[str, ...],
    site: str | None,
    variant: str | None,
    plain: bool,
    width: float,
    overwrite: bool,
    style: str,
) -> None:
    """Write a chart at the width of a column, and print its path.

    Charts are those of the report, on white, in type that prints and is embedded.
    """
    made = iso.figure(
        runs,
        target,
        kind=kind,
        measures=names or None,
        site=site,
        variant=variant,
        plain=plain,
        width=width,
        overwrite=overwrite,
    )
    facts: dict[str, str | int] = {"figure": str(made), "kind": kind}
    show_file(made, facts | {"bytes": made.stat().st_size}, as_json=bool(style))


@click.argument(
    "first", metavar="A", type=PATH, help="A run folder written by -o, or a file of vectors."
)
@click.argument("second", metavar="B", type=PATH, help="The run or file to compare with A.")
@measures("A measure; repeat it for more than one. Without it, the main ones.")
@click.option("--all", is_flag=True, help="Compare all measures that both runs have.")
@sites("A site of A; repeat it for more than one.")
@click.option("--variant", metavar="NAME", default="all", help=flags.ROWS)
@click.option(
    "--match",
    metavar="HOW",
    default="name",
    help="Match sites by name, or layers by relative depth in the model.",
)
@click.option(
    "--negligible",
    metavar="SHARE",
    type=float,
    default=0.01,
    help="Call changes below this share of the scale of a measure negligible; 0 for none.  "
    "[default: 0.01]",
)
@formats
def compare(
    first: Path,
    second: Path,
    names: tuple[str, ...],
    all: bool,
    sites: tuple[str, ...],
    variant: str,
    match: str,
    negligible: float,
    style: str,
) -> None:
    """Print two runs side by side, and what changed.

    The difference is b - a, with a 95 % interval. Where both read the same documents, it is
    paired by document group and far sharper. "changed" means significant at 5 % after
    Holm's correction over the rows. The effect is the difference over the scale of the
    measure: the larger of the two values, or 1 for mean cosines and mean-share. "negligible"
    is a significant difference whose whole interval is below --negligible of that scale.
    """
    changes = iso.compare(
        first,
        second,
        measures=names or None,
        sites=sites or None,
        variant=variant,
        match=match,
        all=all,
        negligible=negligible,
    )
    show(changes, style)


@flags.run
@click.option(
    "--fail-if",
    "rules",
    multiple=True,
    metavar="RULE",
    help="What must not be true: MEASURE[@SITE][/VARIANT] > NUMBER; repeat it for more than "
    "one. 0.9x means nine tenths of the baseline.",
)
@click.option("--baseline", metavar="RUN", type=PATH, help="The run that x in rules refers to.")
@click.option("--junit", metavar="FILE", type=PATH, help="Write JUnit XML to a file.")
@click.option(
    "--markdown", metavar="FILE", type=PATH, help="Write a summary in Markdown to a file."
)
@as_json
@config_file
@quiet
def check(
    run: Path,
    rules: tuple[str, ...],
    baseline: Path | None,
    junit: Path | None,
    markdown: Path | None,
    style: str,
    quiet: bool,
) -> None:
    """Check a run against rules, as a gate for CI.

    Exit 0: all rules hold. Exit 1: one is breached. Exit 2: one could not be checked. A rule
    is breached where the whole 95 % interval lies beyond the limit; where only the value
    does, that is a warning. A rule without a site applies to every site.
    """
    from isoscope.comparison.check import refuse
    from isoscope.comparison.outcomes import as_junit

    outcomes = iso.check(run, rules, baseline=baseline)
    show(outcomes, style)
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
