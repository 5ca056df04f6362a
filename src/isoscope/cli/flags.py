"""Flags that several commands share, each declared once."""

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

from isoscope.errors import ConfigError

Command = Callable[..., None]

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder written by -o.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders written by -o.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress and no remarks.")]
FORMATS = {
    "json": AsJson,
    "csv": Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")],
    "latex": Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs).")],
    "markdown": Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")],
}


def measure(help: str = "A measure; repeat it for more than one.") -> OptionInfo:
    """Return the flag of measures."""
    return typer.Option("-m", "--measure", metavar="NAME", help=help)


def site(help: str = "A site; repeat it for more than one.") -> OptionInfo:
    """Return the flag of a site, or of several."""
    return typer.Option("-s", "--site", metavar="SITE", help=help)


def output(metavar: str, help: str) -> OptionInfo:
    """Return the flag of what is written."""
    return typer.Option("-o", "--output", metavar=metavar, help=help)


def overwrite(what: str) -> OptionInfo:
    """Return the flag that replaces what is there."""
    return typer.Option("--overwrite", help=f"Replace the {what} if it exists.")


Measures = Annotated[list[str] | None, measure()]
Sites = Annotated[list[str] | None, site()]
ROWS = typer.Option("--variant", metavar="NAME", help="Rows: all, no-special or no-sink.")
Variant = Annotated[str, ROWS]


def formats(command: Command) -> Command:
    """Give a command one flag per format in place of its parameter `style`.

    The command gets the format that was chosen, or "" for a table; two are refused before
    it is called.
    """

    def run(**values: object) -> None:
        flags = {name: bool(values.pop(f"as_{name}")) for name in FORMATS}
        command(**values, style=choose_format(**flags))

    flags = [flag(f"as_{name}", kind, False) for name, kind in FORMATS.items()]
    return replace(run, command, "style", flags)


def choose_format(**flags: bool) -> str:
    """Return the one format whose flag is set, or "" for a table; two are an error."""
    chosen = [name for name, is_set in flags.items() if is_set]
    if len(chosen) > 1:
        raise ConfigError(
            f"cannot print --{chosen[0]} with --{chosen[1]}",
            hint="choose one format; `isoscope read RUN` prints a saved run in the others",
            slug="two-formats",
        )
    return chosen[0] if chosen else ""


def flag(
    name: str, annotation: object, default: object = inspect.Parameter.empty
) -> inspect.Parameter:
    """Return a parameter as typer reads it; without a default it is required."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def replace(
    run: Command, command: Command, name: str, flags: Iterable[inspect.Parameter]
) -> Command:
    """Return `run` with the signature of a command, flags standing in for one parameter."""
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command, eval_str=True).parameters.values():
        kept = each.replace(kind=inspect.Parameter.KEYWORD_ONLY) if each.name != name else None
        parameters += flags if kept is None else [kept]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
