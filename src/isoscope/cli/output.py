"""What every command prints with: a table or one of the formats, and remarks beside it."""

import sys
from typing import TYPE_CHECKING, Any

import typer

from isoscope.errors import ConfigError

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.display.table import Table


def chosen(**flags: bool) -> str:
    """The one format that was asked for, or "" for a table; two are refused before work."""
    asked = [name for name, given in flags.items() if given]
    if len(asked) > 1:
        raise ConfigError(
            f"cannot print --{asked[0]} with --{asked[1]}",
            hint="choose one format; `isoscope read RUN` prints a saved run in the others",
            slug="two-formats",
        )
    return asked[0] if asked else ""


def show(results: "Results[Any]", style: str, *, quiet: bool = False) -> None:
    """Print results to stdout, as tables or in a format; what that lacks goes to stderr."""
    if style:
        sys.stdout.write(getattr(results, f"to_{style}")())
    else:
        apart = ""
        for table in results.overview:
            sys.stdout.write(apart)
            show_table(table)
            # On a terminal a table without notes ends with an empty line already.
            noted = table.warnings or table.left_out or not sys.stdout.isatty()
            apart = "\n" if noted else ""
    sys.stdout.flush()
    for text in results.notes(style):
        note(text, quiet=quiet)


def show_table(table: "Table") -> None:
    """Print a table to stdout, folded to its width where that is a terminal."""
    if sys.stdout.isatty():
        from rich.console import Console

        from isoscope.display.formats import print_table

        print_table(table, Console())
    else:
        from isoscope.display.formats import as_text

        sys.stdout.write(as_text(table))


def note(text: str, *, quiet: bool) -> None:
    """Say something on stderr, beside the data."""
    if not quiet:
        from isoscope.display.escape import plain

        typer.echo(plain(text), err=True)
