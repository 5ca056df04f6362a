"""isoscope check: a gate for CI, with an exit code of its own for a breach."""

import os
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.config import ConfigFile
from isoscope.cli.flags import AsJson, Quiet, Run
from isoscope.cli.output import note, show
from isoscope.errors import StoreError

EXAMPLES = (
    "isoscope check runs/a --fail-if 'mean-cosine > 0.9' --junit check.xml",
    "isoscope check runs/b --baseline runs/a --fail-if 'mean-cosine > 2x' --json",
)


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
    from isoscope import api
    from isoscope.comparison.check import refuse
    from isoscope.comparison.outcomes import as_junit

    outcomes = api.check(run, rules or [], baseline=baseline)
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
