"""Flags that several commands share, each declared once."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from isoscope.errors import ConfigError

F = TypeVar("F", bound=Callable[..., None])
PATH = click.Path(path_type=Path)


def choose_format(context: click.Context, flag: click.Parameter, is_set: bool) -> None:
    """Make the format of a flag that is set the command's `style`; two are an error."""
    style = context.params.setdefault("style", "")
    if is_set and style:
        raise ConfigError(
            f"cannot print --{style} with --{flag.name}",
            hint="choose one format; `isoscope read RUN` prints a saved run in the others",
            slug="two-formats",
        )
    context.params["style"] = flag.name if is_set else style


# The command gets the format that was chosen as `style`, or "" for a table.
FORMATS = {
    name: click.option(
        f"--{name}", is_flag=True, expose_value=False, callback=choose_format, help=help
    )
    for name, help in {
        "json": "Print one JSON object per line.",
        "csv": "Print comma-separated values.",
        "latex": "Print a LaTeX table (booktabs).",
        "markdown": "Print a Markdown table.",
    }.items()
}
as_json = FORMATS["json"]
run = click.argument("run", metavar="RUN", type=PATH, help="A run folder written by -o.")
runs = click.argument(
    "runs",
    metavar="RUN...",
    type=PATH,
    nargs=-1,
    required=True,
    help="Run folders written by -o.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print no progress and no remarks.")
ROWS = "Rows: all, no-special or no-sink."


def measures(help: str = "A measure; repeat it for more than one.") -> Callable[[F], F]:
    """Return the flag of measures."""
    return click.option("-m", "--measure", "names", multiple=True, metavar="NAME", help=help)


def sites(help: str = "A site; repeat it for more than one.") -> Callable[[F], F]:
    """Return the flag of sites."""
    return click.option("-s", "--site", "sites", multiple=True, metavar="SITE", help=help)


def output(metavar: str, help: str, *, required: bool = True) -> Callable[[F], F]:
    """Return the flag of what is written."""
    return click.option(
        "-o", "--output", "target", type=PATH, required=required, metavar=metavar, help=help
    )


def overwrite(what: str) -> Callable[[F], F]:
    """Return the flag that replaces what is there."""
    return click.option("--overwrite", is_flag=True, help=f"Replace the {what} if it exists.")


def formats(command: F) -> F:
    """Give a command one flag per format."""
    for option in reversed(FORMATS.values()):
        command = option(command)
    return command
